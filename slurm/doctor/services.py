"""What runs elsewhere: MLflow's server and the model hub."""

from __future__ import annotations

import os
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

from experiments.provenance import without_secrets
from slurm.doctor.check import Check, ok

_SECONDS = 5.0
_HUB = "https://huggingface.co"


def service_checks(tracking: Mapping[str, Any]) -> Iterator[Check]:
    """tracking: that part of a resolved config."""
    uri = str(tracking["uri"])
    if uri.startswith(("http://", "https://")):
        problem = _unreachable(f"{uri.rstrip('/')}/health")
        shown = without_secrets(uri)
        yield (
            ok("MLflow", shown)
            if problem is None
            else Check(
                "MLflow",
                "warn",
                f"{shown}: {problem}",
                "runs don't need it; `fastrl track` will, from anywhere",
            )
        )
    else:
        yield ok("MLflow", without_secrets(uri) or "off")
    if os.environ.get("HF_HUB_OFFLINE", "0") not in ("", "0"):
        yield ok("model hub", "off (HF_HUB_OFFLINE): models come from the cache or from folders")
        return
    problem = _unreachable(os.environ.get("HF_ENDPOINT", _HUB))
    yield (
        ok("model hub", "reachable")
        if problem is None
        else Check(
            "model hub",
            "warn",
            problem,
            "laptop studies need none; for others fetch the models elsewhere, then set HF_HUB_OFFLINE=1",
        )
    )


def _unreachable(address: str) -> str | None:
    """Why an address gives no answer; any answer at all counts as one."""
    try:
        with urllib.request.urlopen(address, timeout=_SECONDS):
            return None
    except urllib.error.HTTPError:
        return None
    except (OSError, ValueError) as error:
        return str(getattr(error, "reason", error))
