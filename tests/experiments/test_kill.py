"""`kill -9` of the driver and of workers at random moments: nothing lost, nothing counted twice."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from experiments.locks import live_holder
from experiments.run_directory import RunDirectory

HERE = Path(__file__).parent
PROJECT = HERE.parents[1]

_MUTEXES = ("status", "config")
_TIMES = ("time", "seconds", "timing_s", "cpu_s")

Start = Callable[[Path], "subprocess.Popen[bytes]"]


def record(root: Path) -> dict[str, Any]:
    """Every run's step log and results, without what tells the time."""
    return {
        run.run_id: {
            "steps": [_without_times(step) for step in run.steps()],
            "results": {name: _without_times(run.results(name) or {}) for name in run.config()["benchmarks"]},
        }
        for run in _runs(root)
    }


def _runs(root: Path) -> list[RunDirectory]:
    return [RunDirectory(path) for path in sorted((root / "runs").iterdir())]


def _without_times(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key.partition("/")[0] not in _TIMES}


def disturb(start: Start, root: Path, rng: random.Random, kills: int, pause: float) -> int:
    """Run a study to its end, killing its driver or a worker up to so many times; returns how often it did.

    pause: longest time in seconds from the start of work to a kill.
    """
    done = 0
    driver = start(root)
    while driver.poll() != 0:
        if driver.poll() is not None:
            driver = start(root)
        elif done < kills and _workers(root):
            time.sleep(rng.uniform(0.0, pause))
            victims = _workers(root)
            if victims and rng.random() < 0.6:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(rng.choice(victims), signal.SIGKILL)
            else:
                driver.kill()
                driver.wait()
            done += 1
        else:
            time.sleep(0.01)
    return done


def _workers(root: Path) -> list[int]:
    """The processes that work on a stage now."""
    locks = [lock for lock in root.glob("runs/*/locks/*.lock") if lock.stem not in _MUTEXES]
    return [holder.pid for holder in map(live_holder, locks) if holder is not None]


def counting_driver(root: Path) -> subprocess.Popen[bytes]:
    study = {"arms": 2, "seeds": 2, "steps": 40, "checkpoint_every": 3, "seconds": 0.02}
    command = [sys.executable, str(HERE / "counting_study.py"), str(root), json.dumps(study)]
    environment = {**os.environ, "PYTHONPATH": f"{HERE}:{PROJECT}"}
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)


def test_a_study_whose_processes_are_killed_ends_like_an_undisturbed_one(tmp_path: Path) -> None:
    rng = random.Random(7)
    kills = 0
    roots: list[Path] = []
    while kills < 15:
        roots.append(tmp_path / f"disturbed_{len(roots)}")
        kills += disturb(counting_driver, roots[-1], rng, 15 - kills, pause=0.5)
    assert counting_driver(tmp_path / "undisturbed").wait() == 0
    expected = record(tmp_path / "undisturbed")
    assert len(expected) == 4
    attempts = 0
    for root in roots:
        assert record(root) == expected
        attempts += sum(entry.attempt for run in _runs(root) for entry in run.status().values())
    assert attempts > 8 * len(roots) + 5


@pytest.fixture(scope="module")
def trainings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `killed_training.py` prints."""
    root = tmp_path_factory.mktemp("trainings")
    command = [sys.executable, str(HERE / "killed_training.py"), str(root), "5"]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "OMP_NUM_THREADS": "1"}
    shown = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert shown.returncode == 0, shown.stderr
    printed: dict[str, Any] = json.loads(shown.stdout)
    return printed


@pytest.mark.slow
def test_a_real_training_that_is_killed_ends_like_an_undisturbed_one(trainings: dict[str, Any]) -> None:
    undisturbed, killed = (RunDirectory(Path(path)) for path in trainings["runs"])
    assert killed.status()["train"].attempt > 1
    assert list(map(_without_times, killed.steps())) == list(map(_without_times, undisturbed.steps()))
    assert len(killed.steps()) == 7
    weights = [run.final_checkpoint / "model.safetensors" for run in (undisturbed, killed)]
    assert weights[0].read_bytes() == weights[1].read_bytes()


@pytest.mark.slow
def test_recorded_rollouts_agree_with_the_step_log(trainings: dict[str, Any]) -> None:
    undisturbed, killed = (RunDirectory(Path(path)) for path in trainings["runs"])
    steps = {record["step"]: record for record in killed.steps()}
    assert sorted(path.name for path in killed.rollouts.iterdir()) == ["step_3.parquet", "step_6.parquet"]
    for step in (3, 6):
        table = pq.read_table(killed.rollouts / f"step_{step}.parquet")
        assert table == pq.read_table(undisturbed.rollouts / f"step_{step}.parquet")
        assert table.num_rows == steps[step]["rollout/trajectories"]
        assert sum(map(len, table["tokens"].to_pylist())) == steps[step]["rollout/tokens"]
        assert sum(table["kept"].to_pylist()) == steps[step]["select/kept_aligned"]


@pytest.mark.slow
def test_the_train_stage_needs_none_of_the_packages_of_other_rooms(trainings: dict[str, Any]) -> None:
    others = {"hydra", "omegaconf", "lm_eval", "mlflow", "pandas", "submitit", "pydantic", "pyarrow", "rich"}
    assert {"torch", "transformers", "numpy", "yaml"} <= set(trainings["packages"])
    assert not others & set(trainings["packages"])
