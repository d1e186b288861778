"""The laptop study's own policy and figures on a real EasyR1, by the train stage of a composed run.

`CONTROL_PYTHON` names an interpreter of the environment that has Hydra, which composes the run and builds its
policy, as on a cluster; without it, `.venv` of the checkout is taken. EasyR1's environment trains.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from image_witness import fingerprint, read_witness

from experiments.run_directory import RunDirectory

pytestmark = [pytest.mark.easyr1, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
CONTROL = os.environ.get("CONTROL_PYTHON", str(ROOT / ".venv" / "bin" / "python"))
STEPS = 4

SMALLER = (
    "engine=easyr1_cpu",
    "engine.freeze_vision_tower=true",
    "benchmark=[]",
    "tracking=none",
    # A third of the study's warm-up: the policy reads little, and answers in the right form half of the time.
    "model.sft.steps=500",
    "model.sft.caption_steps=150",
    "dataset.splits.sizes={train: 32, selection: 8, validation: 16, out_of_domain: 8}",
    "training.epochs=2",
    "training.questions_per_step=16",
    "training.validate_every=2",
    "training.checkpoint_every=2",
    "training.record_rollouts_every=1",
)
"""What is changed of the study's FastRL cell."""


@dataclass(frozen=True)
class Laptop:
    """run: the trained run. policy: the folder that it started from."""

    run: RunDirectory
    policy: Path


@pytest.fixture(scope="module")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> Laptop:
    code = "import hydra, transformers, sys; sys.exit(int(transformers.__version__.split('.')[0]) < 5)"
    if not Path(CONTROL).is_file() or subprocess.run([CONTROL, "-c", code], check=False).returncode:
        pytest.skip(f"no Hydra and transformers 5 in {CONTROL}: make env, or name another by CONTROL_PYTHON")
    root = tmp_path_factory.mktemp("laptop")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", "RAY_AUTH_MODE": "disabled"}
    home = os.environ.get("EASYR1_HOME")
    overrides = ["method=fastrl", *SMALLER, *([f"engine.home={home}"] if home else [])]
    made = _output([CONTROL, str(HERE / "compose_run.py"), str(root), *overrides], environment)
    run = RunDirectory(Path(made.splitlines()[-1]))
    _output([sys.executable, str(HERE / "watched_stage.py"), str(run.path)], environment)
    (policy,) = (path for path in (root / "models").iterdir() if (path / "config.json").is_file())
    return Laptop(run, policy)


def _output(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    return done.stdout


def test_every_step_is_on_the_schema_of_reports_and_its_stages_add_up(laptop: Laptop) -> None:
    from analysis.step_frames import STAGES, read_step_frame

    steps = read_step_frame(laptop.run.steps_path, "timing_s")
    assert steps["step"].tolist() == [0, 1, 2, 3, 4]
    assert steps.loc[steps["val/accuracy"].notna(), "step"].tolist() == [0, 2, 4]
    trained = steps[steps["step"] > 0]
    parts = sum(trained[f"timing_s/{stage}"] for stage in STAGES)
    assert parts.tolist() == pytest.approx(trained["timing_s/step"].tolist())
    assert (trained["timing_s/gen"] > 0).all()
    passed = trained["time"].diff().dropna()
    assert (trained["timing_s/step"].iloc[1:] <= passed).all()


def test_rewards_come_from_the_studys_own_reward(laptop: Laptop) -> None:
    """Accuracy, and half a point for the form; the policy earns both before it is trained."""
    records = [record for record in laptop.run.steps() if record["step"] > 0]
    for record, step in zip(records, recorded(laptop.run), strict=True):
        for row in step:
            assert row["reward"] == row["accuracy"] + 0.5 * row["format"]
        mean = sum(row["reward"] for row in step) / len(step)
        assert record["reward/mean"] == pytest.approx(mean, rel=1e-5)
    assert 0 < records[0]["reward/accuracy"] < 1
    assert 0 < records[0]["reward/format"] < 1
    assert all(0 <= record["val/accuracy"] <= 1 for record in laptop.run.steps() if "val/accuracy" in record)


def test_the_figures_of_a_question_reach_the_model_with_its_trajectories(laptop: Laptop) -> None:
    """Questions have few texts and are told apart by their figures alone: trajectories are, by their ids."""
    figures = figures_of(laptop)
    assert len(set(figures.values())) == 32
    seen = read_witness(laptop.run.checkpoints)
    for stage in ("old", "update"):
        rows = iter([row for row in seen if row["stage"] == stage])
        for step in recorded(laptop.run):
            kept = [row for row in step if row["kept"]]
            expected = Counter((figures[row["question_id"]], tuple(row["tokens"])) for row in kept)
            given = [next(rows) for _ in kept]
            assert Counter((row["images"], tuple(row["response"])) for row in given) == expected
        assert next(rows, None) is None, stage
    assert {row["images"] for row in seen if row["stage"] == "sample"} >= set(figures.values())


def test_the_exported_policy_loads_and_has_learned_in_its_decoder_alone(laptop: Laptop) -> None:
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModelForImageTextToText

    before, after = (
        load_file(folder / "model.safetensors") for folder in (laptop.policy, laptop.run.final_checkpoint)
    )
    assert before.keys() == after.keys()
    changed = {name for name in before if not torch.equal(before[name].float(), after[name].float())}
    assert changed == {name for name in before if "visual" not in name}
    policy, loading = AutoModelForImageTextToText.from_pretrained(
        laptop.run.final_checkpoint, output_loading_info=True
    )
    assert not any(loading.values())
    assert sum(weights.numel() for weights in policy.parameters()) > 400_000


def recorded(run: RunDirectory) -> Iterator[list[dict[str, Any]]]:
    """The trajectories of each step."""
    import pyarrow.parquet as pq

    for step in range(1, STEPS + 1):
        yield pq.read_table(run.rollouts / f"step_{step}.parquet").to_pylist()


def figures_of(laptop: Laptop) -> dict[str, str]:
    """By question: the fingerprint of what the policy's processor makes of its figure."""
    from eval.datasets import load_questions
    from fastrl.engines.reference.qwen_processor import load_qwen_processor

    processor = load_qwen_processor(laptop.policy).image_processor
    dataset = laptop.run.config()["dataset"]
    return {
        question.id: fingerprint(
            dict(processor(images=[image.convert("RGB") for image in question.images], return_tensors="pt"))
        )
        for question in load_questions(dataset, "train")
    }
