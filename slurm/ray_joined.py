"""Wait until nodes have joined Ray: `python -m slurm.ray_joined ADDRESS SECONDS NAME...`, in Ray's Python.

Prints the names of those that have as JSON; the exit code is 0 when all have.
"""

from __future__ import annotations

import json
import sys
import time

import ray

_POLL_SECONDS = 0.5


def main(arguments: list[str]) -> int:
    address, seconds, wanted = arguments[0], float(arguments[1]), set(arguments[2:])
    end = time.monotonic() + seconds
    ray.init(address=address, log_to_driver=False, logging_level="error")
    while True:
        joined = {node["NodeName"] for node in ray.nodes() if node["Alive"]}
        if wanted <= joined or time.monotonic() > end:
            print(json.dumps(sorted(joined)))
            return 0 if wanted <= joined else 1
        time.sleep(_POLL_SECONDS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
