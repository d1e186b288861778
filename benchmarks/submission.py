"""Seconds to bring a study into a Slurm queue: as `fastrl submit` does it, and in other ways.

  fastrl cluster up && eval "$(fastrl cluster env)"          without a cluster there is nothing to measure
  python benchmarks/submission.py --cells 500 --others 20

The jobs are told to begin in an hour and are cancelled again. The other ways send `--others` trivial jobs:
one sbatch a job; submitit, as an array and one submission a job; Hydra's submitit launcher, which waits for
its jobs, when it is installed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from experiments.plan import write_plan
from experiments.stage import STAGES
from experiments.study import plan_study
from slurm.cancel import cancel
from slurm.client import SlurmError, call
from slurm.overview import study_overview
from slurm.submit import Request, submit_study

_LATER = "now+1hour"
_HYDRA_APP = """
import hydra
@hydra.main(version_base="1.3", config_path=None)
def main(config): pass
main()
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cells", type=int, default=500)
    parser.add_argument("--others", type=int, default=100)
    parser.add_argument(
        "--hydra-python", default=sys.executable, help="an interpreter that has hydra-submitit-launcher"
    )
    given = parser.parse_args()
    try:
        call(["sinfo", "--version"])
    except SlurmError as error:
        print(f"left out: {error}")
        return
    with tempfile.TemporaryDirectory(prefix="submission-") as folder:
        _fastrl(Path(folder), given.cells)
        ways: dict[str, Callable[[Path, int], str]] = {
            "sbatch": _sbatch,
            "submitit, an array": _submitit_array,
            "submitit, single jobs": _submitit_single,
            "Hydra, submitit": partial(_hydra, given.hydra_python),
        }
        for name, way in ways.items():
            path = Path(folder) / name.replace(" ", "-")
            path.mkdir()
            print(f"{name:22} {given.others:5} jobs   {way(path, given.others)}", flush=True)


class _Watch:
    """Seconds since it was made, and those of this process's CPU, in which Slurm's commands are not."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def __str__(self) -> str:
        wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        return f"{wall:.2f} s (CPU {cpu:.2f} s)"


def _fastrl(folder: Path, cells: int) -> None:
    root = folder / "fastrl"
    watch = _Watch()
    plan, configs = plan_study("smoke", [f"seed=range(0,{cells // 2})", "cluster=minislurm"], root)
    print(f"{'fastrl plan':22} {len(plan.cells):5} cells  {watch}", flush=True)
    write_plan(root, plan)
    for config in configs.values():
        config["cluster"]["slurm"]["extra"]["begin"] = _LATER
    for occasion in ("first", "again"):
        watch = _Watch()
        outcome = submit_study(plan, configs, root, Request(None, (), None, False, STAGES, time.time()))
        jobs = sum(len(sent.array.tasks) for sent in outcome.arrays)
        print(
            f"{f'fastrl submit, {occasion}':22} {len(plan.cells):5} cells  {watch}, {jobs} jobs", flush=True
        )
    watch = _Watch()
    study_overview(plan, root)
    print(f"{'fastrl status':22} {len(plan.cells):5} cells  {watch}", flush=True)
    cancel(root, lambda submission, run_id, stage: True)


def _sbatch(folder: Path, jobs: int) -> str:
    start = time.perf_counter()
    ids = [
        call(["sbatch", "--parsable", f"--begin={_LATER}", "-o", "/dev/null", "--wrap", "true"]).strip()
        for _ in range(jobs)
    ]
    seconds = time.perf_counter() - start
    call(["scancel", *ids])
    return f"{seconds:.2f} s"


def _submitit_array(folder: Path, jobs: int) -> str:
    return _submitit(folder, jobs, array=True)


def _submitit_single(folder: Path, jobs: int) -> str:
    return _submitit(folder, jobs, array=False)


def _submitit(folder: Path, jobs: int, array: bool) -> str:
    import submitit

    executor = submitit.AutoExecutor(folder=folder, cluster="slurm")
    executor.update_parameters(
        timeout_min=30, slurm_additional_parameters={"begin": _LATER}, slurm_array_parallelism=jobs
    )
    start = time.perf_counter()
    if array:
        sent = executor.map_array(abs, range(jobs))
    else:
        sent = [executor.submit(abs, number) for number in range(jobs)]
    seconds = time.perf_counter() - start
    call(["scancel", *sorted({job.job_id.partition("_")[0] for job in sent})])
    return f"{seconds:.2f} s"


def _hydra(python: str, folder: Path, jobs: int) -> str:
    probe = [python, "-c", "import hydra_plugins.hydra_submitit_launcher"]
    if subprocess.run(probe, capture_output=True, check=False).returncode != 0:
        return "hydra-submitit-launcher is not installed"
    app = folder / "app.py"
    app.write_text(_HYDRA_APP, encoding="utf-8")
    start = time.perf_counter()
    subprocess.run(
        [python, str(app), "-m", "hydra/launcher=submitit_slurm", f"+x=range(0,{jobs})"],
        cwd=folder,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return f"{time.perf_counter() - start:.2f} s, until the last job had ended"


if __name__ == "__main__":
    main()
