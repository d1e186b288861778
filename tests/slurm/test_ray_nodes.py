"""Trainings over several nodes, with a real Ray on a real Slurm: what is started, what may die, what is left.

`RAY_PYTHON=PYTHON python -m pytest tests/slurm/test_ray_nodes.py` names an interpreter that has Ray and what
stages need; without it, the one that runs the tests is asked.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rehearsal import TRAIN, cell_config, expected_of, look, outcome_of, run_of, send, states, until

from experiments.identity import run_id
from experiments.run_directory import RunDirectory
from slurm.client import SlurmError, call
from slurm.overview import Overview, StageView

PYTHON = os.environ.get("RAY_PYTHON", sys.executable)
STAGES = {"train": "ray_stage:train", "evaluate": "counting_stage:evaluate"}
ENDED = {"done", "failed", "killed", "died", "skipped", "preempted"}
pytestmark = [pytest.mark.slurm, pytest.mark.slow]

ACCIDENTS = {
    "worker_killed": "need",
    "head_killed": "wait",
    "asked_to_save": "wait",
    "job_killed": "wait",
    "driver_fails": "raise",
    "never_joins": "none",
}
"""Name of each cell: the accident of its training. Cells start in this order."""

NAMES = list(ACCIDENTS)


@dataclass(frozen=True)
class Story:
    """seen: each cell's training, as shown when the first submission had come to rest. ended: in the end, the
    one of the killed worker sent again."""

    root: Path
    configs: dict[str, dict[str, Any]]
    seen: dict[str, StageView]
    ended: Overview


@pytest.fixture(scope="module")
def ray_python() -> str:
    code = "import importlib.util, sys; sys.exit(importlib.util.find_spec('ray') is None)"
    if subprocess.run([PYTHON, "-c", code], check=False).returncode != 0:
        pytest.skip(f"no Ray in {PYTHON}: install the extra `ray`, or name another Python with RAY_PYTHON")
    return PYTHON


def cell(seed: int, accident: str, python: str, seconds: int) -> dict[str, Any]:
    shape = {"gpus": 1, "cpus": 1, "memory": "4G", "minutes": 30, "nodes": 2}
    # Two at a time start within reasonable time on a machine of two cores.
    changes = {"shapes.train": shape, "python.train": python, "ray_join_seconds": seconds, "parallelism": 2}
    return {**cell_config(seed, accident, changes), "engine": {"name": "counting", "nodes": 2}}


@pytest.fixture(scope="module")
def story(ray_python: str, cluster: None, tmp_path_factory: pytest.TempPathFactory) -> Story:
    root = tmp_path_factory.mktemp("ray")
    deaf = root / "deaf-python"
    deaf.write_text(
        f'#!/bin/bash\n[ "$SLURM_STEP_ID" != 1 ] || sleep 300\nexec {shlex.quote(ray_python)} "$@"\n'
    )
    deaf.chmod(0o755)
    configs = {name: cell(seed, ACCIDENTS[name], ray_python, 240) for seed, name in enumerate(NAMES)}
    configs["never_joins"] = cell(NAMES.index("never_joins"), "none", str(deaf), 60)
    cells = list(configs.values())
    send(root, cells, stages=STAGES)
    for name, happen in FROM_OUTSIDE.items():
        run = run_of(root, configs[name])
        happen(run, until(lambda: nodes_of(run), f"{name} on its nodes", 280.0))  # noqa: B023
    at_rest = until(lambda: rested(look(root, cells)), "every job at its end", 280.0)
    seen = {name: view.stages[TRAIN] for name, view in zip(NAMES, at_rest.cells, strict=True)}
    send(root, cells, stages=STAGES, retry="lost", only=(run_id(configs["worker_killed"]),))
    ended = until(lambda: rested(look(root, cells)), "the study at its end", 280.0)
    return Story(root, configs, seen, ended)


def rested(overview: Overview) -> Overview | None:
    return overview if all(set(cell.values()) <= ENDED for cell in states(overview)) else None


def nodes_of(run: RunDirectory, attempt: int = 1) -> dict[str, Any] | None:
    """What an attempt saw of its nodes, by name and beside Ray's address."""
    path = run.path / f"nodes-{attempt}.json"
    return json.loads(path.read_text()) if path.is_file() else None


def worker_of(nodes: dict[str, Any]) -> str:
    """The node whose step was started after the head's."""
    return next(name for name, seen in nodes.items() if name != "address" and seen["step"] != "0")


def kill_part(run: RunDirectory, part: str, node: str) -> None:
    """`kill -9` of a part of Ray on a node of the run's job."""
    job = run.status()[TRAIN].slurm_job_id
    wanted = {f"SLURM_JOB_ID={job}", f"SLURMD_NODENAME={node}"}
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            environment = set((process / "environ").read_bytes().decode(errors="replace").split("\0"))
            if (process / "comm").read_text().strip() == part and wanted <= environment:
                found.append(int(process.name))
    (only,) = found
    os.kill(only, signal.SIGKILL)


def kill_worker(run: RunDirectory, nodes: dict[str, Any]) -> None:
    kill_part(run, "raylet", worker_of(nodes))


def kill_head(run: RunDirectory, nodes: dict[str, Any]) -> None:
    head = next(name for name in nodes if name not in ("address", worker_of(nodes)))
    kill_part(run, "gcs_server", head)


def ask_to_save(run: RunDirectory, nodes: dict[str, Any]) -> None:
    jobs = call(["squeue", "--user", str(os.getuid()), "-h", "-r", "-t", "running", "-o", "%A %i"]).split(
        "\n"
    )
    task = dict(line.split() for line in jobs if line)[str(run.status()[TRAIN].slurm_job_id)]
    # On a busy machine the signal arrives and scancel waits on for an answer.
    with contextlib.suppress(SlurmError):
        call(["scancel", "--batch", "--signal=USR2", task], 15.0)


def kill_job(run: RunDirectory, nodes: dict[str, Any]) -> None:
    stat = Path(f"/proc/{run.status()[TRAIN].pid}/stat").read_text()
    os.kill(int(stat.rpartition(")")[2].split()[1]), signal.SIGKILL)


FROM_OUTSIDE: dict[str, Callable[[RunDirectory, dict[str, Any]], None]] = {
    "worker_killed": kill_worker,
    "head_killed": kill_head,
    "asked_to_save": ask_to_save,
    "job_killed": kill_job,
}
"""Accidents that come from outside the stage, by the name of the cell."""


def test_ray_spans_the_nodes_with_what_the_job_has_of_each(story: Story) -> None:
    nodes = nodes_of(run_of(story.root, story.configs["asked_to_save"]))
    assert nodes is not None
    names = sorted(nodes.keys() - {"address"})
    assert len(names) == 2
    for name in names:
        assert nodes[name]["node"] == name
        assert nodes[name]["resources"] == {"CPU": 1, "GPU": 1}


def test_two_jobs_on_the_same_nodes_have_rays_of_their_own(story: Story) -> None:
    found = [nodes_of(run_of(story.root, config)) for config in story.configs.values()]
    addresses = [nodes["address"] for nodes in found if nodes]
    assert len(addresses) >= len(FROM_OUTSIDE)
    assert len(set(addresses)) == len(addresses)


@pytest.mark.parametrize("name", ["worker_killed", "head_killed"])
def test_the_death_of_a_node_ends_the_stage_with_the_log_of_that_node(story: Story, name: str) -> None:
    run = run_of(story.root, story.configs[name])
    nodes = nodes_of(run)
    assert nodes is not None
    worker = worker_of(nodes)
    head = next(each for each in nodes if each not in ("address", worker))
    seen = story.seen[name]
    assert (seen.verdict.state, seen.verdict.source) == ("killed", "status.json")
    assert seen.submitted is not None
    log = seen.submitted.submission.node_log(seen.submitted.task, head if name == "head_killed" else worker)
    assert str(log) in seen.verdict.detail
    assert seen.verdict.detail.count("Ray on") == 1
    assert seen.entry is not None and seen.entry.error is not None
    assert seen.entry.error.log_tail.splitlines()[-1] in log.read_text()
    assert ("gcs_server" if name == "head_killed" else "raylet") in seen.entry.error.log_tail


def test_a_driver_that_fails_says_so_itself(story: Story) -> None:
    verdict = story.seen["driver_fails"].verdict
    assert verdict.state == "failed"
    assert "ValueError: the driver can't go on" in verdict.detail


def test_a_node_that_never_joins_is_named_and_not_waited_for(story: Story) -> None:
    verdict = story.seen["never_joins"].verdict
    assert verdict.state == "died"
    assert "Ray has not come up in 60 s" in verdict.detail
    assert "node2 of 2 nodes missing" in verdict.detail


def test_a_training_that_was_asked_to_save_goes_on_with_a_new_ray(story: Story) -> None:
    view = story.seen["asked_to_save"]
    assert view.verdict.state == "done"
    assert view.entry is not None and view.entry.attempt == 2
    run = run_of(story.root, story.configs["asked_to_save"])
    first, second = nodes_of(run, 1), nodes_of(run, 2)
    assert first is not None and second is not None
    assert first["address"] != second["address"]


@pytest.mark.parametrize("name", ["asked_to_save", "worker_killed"])
def test_a_cell_ends_like_an_undisturbed_one(story: Story, name: str) -> None:
    assert set(states(story.ended)[NAMES.index(name)].values()) == {"done"}
    assert outcome_of(story.root, story.configs[name]) == expected_of(story.configs[name])


def test_no_process_of_ray_and_no_folder_of_it_is_left(story: Story) -> None:
    views = [*story.seen.values(), *(view.stages[TRAIN] for view in story.ended.cells)]
    jobs = {str(view.entry.slurm_job_id) for view in views if view.entry}
    jobs |= {view.job.raw_id for view in views if view.job}
    assert len(jobs) >= len(NAMES)
    killed = story.seen["job_killed"].entry
    assert killed is not None

    def left() -> list[str]:
        found = []
        for job in jobs:
            folder = f"/tmp/ray-job-{job}"
            # A job that is killed can't tidy up, and Slurm may not leave the time to its steps.
            found += [folder] if Path(folder).exists() and job != killed.slurm_job_id else []
            command = ["pgrep", "-af", f"{folder}/"]
            found += subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()
        return found

    until(lambda: not left(), "no process of Ray", seconds=60.0)
    shutil.rmtree(f"/tmp/ray-job-{killed.slurm_job_id}", ignore_errors=True)
