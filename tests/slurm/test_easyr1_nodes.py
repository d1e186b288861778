"""EasyR1's own trainer over two nodes of a real Slurm, joined by the Ray launcher, beside the same on one.

`EASYR1_HOME=CHECKOUT RAY_PYTHON=PYTHON python -m pytest tests/slurm/test_easyr1_nodes.py` names EasyR1 and
the interpreter of its environment, which trains; the tests run in the environment that submits.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from rehearsal import until

from analysis.step_frames import STAGES, read_step_frame
from experiments.cli import main
from experiments.run_directory import RunDirectory
from experiments.study import plan_study

pytestmark = [pytest.mark.easyr1, pytest.mark.slurm, pytest.mark.slow]

PYTHON = os.environ.get("RAY_PYTHON", sys.executable)
STUDY = "laptop_text"
CELL = (
    "method=fastrl",
    "seed=0",
    "fastrl.tau=0.8",
    "engine=easyr1_cpu",
    "engine.micro_batch_update=4",
    "engine.micro_batch_experience=8",
    "benchmark=[]",
    "tracking=none",
    # A third of the study's warm-up: the policy has the form of an answer, and now and then the answer.
    "model.sft.steps=300",
    "dataset.splits.sizes={train: 48, selection: 8, validation: 16, out_of_domain: 8}",
    "training.epochs=2",
    "training.questions_per_step=16",
    "training.validate_every=3",
    "training.checkpoint_every=3",
    "cluster=minislurm",
    "cluster.slurm.shapes.train.memory=16G",
)
"""What is changed of the study, down to one cell of six steps."""

NODES = {
    "one": ("engine.nodes=1", "engine.gpus_per_node=2"),
    "two": ("engine.nodes=2", "engine.gpus_per_node=1", "cluster.slurm.shapes.train.gpus=1"),
}
"""Two workers either way."""


@dataclass(frozen=True)
class Trained:
    """places: by job, the nodes on which it was seen to have a worker of EasyR1 while it ran."""

    run: RunDirectory
    places: dict[str, set[str]]


@pytest.fixture(scope="module")
def easyr1() -> tuple[str, ...]:
    """What a submission says of EasyR1, where there is one."""
    home = os.environ.get("EASYR1_HOME")
    if not home or not (Path(home) / "verl").is_dir():
        pytest.skip("no EasyR1: set EASYR1_HOME to a checkout of it")
    wanted = ("ray", "tensordict", "torchdata")
    code = f"import importlib.util as u, sys; sys.exit(not all(u.find_spec(name) for name in {wanted}))"
    if subprocess.run([PYTHON, "-c", code], check=False).returncode != 0:
        pytest.skip(f"{PYTHON} is not of EasyR1's environment: name one that is with RAY_PYTHON")
    return (f"engine.home={home}", f"cluster.slurm.python.train={PYTHON}")


@pytest.fixture(scope="module")
def train(
    easyr1: tuple[str, ...], cluster: None, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Trained]:
    root = tmp_path_factory.mktemp("nodes")
    # What a Ray of one node leaves in the home folder, and what Ray asks every node for from then on.
    token = root / "home" / ".ray" / "auth_token"
    token.parent.mkdir(parents=True)
    token.write_text("0123456789abcdef" * 4)

    def submitted(name: str) -> Trained:
        words = [*CELL, *easyr1, *NODES[name], f"+cluster.slurm.environment.HOME={root / 'home'}"]
        plan, _ = plan_study(STUDY, words, root)
        (cell,) = plan.cells
        run, places = RunDirectory(root / "runs" / cell.run_id), dict[str, set[str]]()
        assert main(["submit", f"study={STUDY}", *words, f"paths.root={root}"]) == 0

        def ended() -> bool:
            entry = run.status().get("train") if run.status_path.is_file() else None
            if entry is None:
                return False
            job = str(entry.slurm_job_id)
            places.setdefault(job, set()).update(node for node, is_worker in of_job(job) if is_worker)
            return entry.state != "running"

        until(ended, f"the end of {cell.run_id}", 280.0)
        return Trained(run, places)

    return submitted


@pytest.fixture(scope="module")
def one(train: Callable[[str], Trained]) -> Trained:
    return train("one")


@pytest.fixture(scope="module")
def two(train: Callable[[str], Trained]) -> Trained:
    return train("two")


def of_job(job: str) -> Iterator[tuple[str, bool]]:
    """The processes of a job's Ray: the node of each, and whether it is a worker of EasyR1."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            environment = (process / "environ").read_bytes().decode(errors="replace").split("\0")
            known = dict(item.partition("=")[::2] for item in environment)
            command = (process / "cmdline").read_bytes().decode(errors="replace")
            if known.get("SLURM_JOB_ID") == job and "ray" in command:
                yield known.get("SLURMD_NODENAME", ""), command.startswith("ray::") and "Worker" in command


def test_a_worker_on_each_of_two_nodes_trains_to_the_end(two: Trained) -> None:
    entry = two.run.status()["train"]
    assert (entry.state, entry.attempt) == ("done", 1)
    (nodes,) = two.places.values()
    assert len(nodes) == 2
    assert (two.run.final_checkpoint / "model.safetensors").is_file()


def test_its_record_has_every_step_and_adds_up(two: Trained) -> None:
    steps = read_step_frame(two.run.steps_path, "timing_s")
    assert steps["step"].tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert steps.loc[steps["val/accuracy"].notna(), "step"].tolist() == [0, 3, 6]
    trained = steps[steps["step"] > 0]
    parts = sum(trained[f"timing_s/{stage}"] for stage in STAGES)
    assert parts.tolist() == pytest.approx(trained["timing_s/step"].tolist())
    assert (trained["select/kept"] < trained["rollout/trajectories"]).any()
    assert (trained["actor/grad_norm"] > 0).all()


def test_it_ends_with_the_weights_of_two_workers_on_one_node(one: Trained, two: Trained) -> None:
    (nodes,) = one.places.values()
    assert len(nodes) == 1
    weights = [each.run.final_checkpoint / "model.safetensors" for each in (one, two)]
    assert weights[0].read_bytes() == weights[1].read_bytes()
    alike = ("rollout/tokens", "select/kept", "reward/mean", "actor/grad_norm", "val/accuracy")
    records = [[[record.get(key) for key in alike] for record in each.run.steps()] for each in (one, two)]
    assert records[0] == records[1]


def test_nothing_of_ray_is_left_on_either_node(one: Trained, two: Trained) -> None:
    for job in (*one.places, *two.places):
        until(lambda: not list(of_job(job)), f"no process of Ray of job {job}", 60.0)  # noqa: B023
        assert not Path(f"/tmp/ray-job-{job}").exists()
