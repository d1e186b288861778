"""GPU-hours that the paper's times imply, and the schedules that one run takes from another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.commands.gpu_hours import NO_TIMES, gpu_hours
from experiments.commands.waiting import replayed_schedules
from experiments.compose import compose_cell
from experiments.identity import run_id
from experiments.run_directory import RunDirectory
from experiments.status import StageStatus, write_entry

VISION = ("engine=easyr1", "model=qwen2_5_vl_7b", "dataset=geometry3k", "training=paper_geometry3k")
TEXT = ("engine=easyr1", "model=llama3_1_8b", "dataset=math", "training=paper_math")
GRPO = 534.96 * 25 * (2101 // 256) * 4 / 3600
GENERATION, LOG_PROBS, UPDATES = 87.32, 64.135, 319.37
"""Of GRPO's step; two passes of log-probs."""


@pytest.mark.parametrize(
    ("overrides", "hours"),
    [
        ((*VISION, "method=grpo"), GRPO),
        ((*VISION, "method=fastrl"), GRPO / 2.14),
        ((*VISION, "method=fastrl", "fastrl.tau=1"), GRPO / 2.35),
        ((*VISION, "method=cppo"), GRPO / 1.6),
        ((*VISION, "method=fastrl_without_mdap", "method.rollouts.values=[8,7]"), GRPO / 1.15),
        ((*VISION, "method=random_50"), GRPO * (GENERATION + LOG_PROBS + UPDATES / 2) / 534.96),
        ((*VISION, "method=gspo"), GRPO * (GENERATION + LOG_PROBS + UPDATES) / 534.96),  # no reference
        ((*VISION, "method=fastrl", "training.updates=4"), 8.8 * 4),
        ((*VISION, "method=grpo", "training.updates=4"), 8.8 * 2.9 * 4),
        ((*VISION, "method=grpo", "training.epochs=5"), GRPO / 5),
        ((*TEXT, "method=grpo"), 21.16 * 4),
        ((*TEXT, "method=fastrl", "engine.gpus_per_node=8"), 9.22 * 8),
    ],
)
def test_hours_follow_from_the_papers_times(overrides: tuple[str, ...], hours: float) -> None:
    assert gpu_hours(compose_cell(overrides)).hours == pytest.approx(hours, rel=1e-4)


@pytest.mark.parametrize(
    ("overrides", "why"),
    [
        ((*VISION, "method=dapo"), "skips or draws again"),
        ((*VISION, "method=greso"), "skips or draws again"),
        ((*VISION, "method=fastrl", "fastrl.tau=0.7"), "trajectories it keeps"),
        ((*VISION, "method=grpo", "model=qwen3_vl_8b"), NO_TIMES),
        ((*TEXT, "method=cppo"), NO_TIMES),
    ],
)
def test_without_a_basis_there_is_no_number(overrides: tuple[str, ...], why: str) -> None:
    estimate = gpu_hours(compose_cell(overrides))
    assert estimate.hours is None
    assert why in estimate.basis


def test_a_replayed_schedule_is_compared_with_the_run_that_it_is_from(tmp_path: Path) -> None:
    replaying = compose_cell([*VISION, "method=fastrl_without_mdap", "method.rollouts.values=[8,7]"])
    configs = {run_id(each): each for each in (compose_cell([*VISION, "method=fastrl"]), replaying)}
    source = RunDirectory.create(tmp_path, *next(iter(configs.items())))
    (waiting,) = replayed_schedules(configs, tmp_path)
    assert f"replays the rollouts of {source.run_id}, which is not trained yet" in waiting

    def finish(rollouts: list[int]) -> None:
        steps = [{"step": n, "epoch": n - 1, "rollout/n": own} for n, own in enumerate(rollouts, start=1)]
        source.steps_path.write_text("".join(json.dumps(step) + "\n" for step in steps))

    entry = StageStatus("done", 1, 0.0, 0.0, "host", 1, None, None)
    write_entry(source.status_path, "train", entry)
    finish([8, 7, 7])
    assert replayed_schedules(configs, tmp_path) == []
    finish([8, 8, 6])
    (wrong,) = replayed_schedules(configs, tmp_path)
    assert "write method.rollouts.values=[8,8,6] into its study" in wrong
