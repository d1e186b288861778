"""What verl and EasyR1 showed on their consoles, kept in a file, becomes the same run as their log files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from analysis.foreign import easyr1, verl
from analysis.foreign.log import ForeignLog, StepSizes
from analysis.study import load_study
from experiments.cli import main
from experiments.errors import UserError

SIZES = StepSizes(n=8, questions=32, updates=4)
STEPS = 4
RAY = "\x1b[36m(TaskRunner pid=4711, ip=10.0.0.2)\x1b[0m "


def verl_metrics(step: int) -> dict[str, Any]:
    metrics = {
        "actor/entropy": 0.25,
        "actor/pg_loss": -0.003,
        "actor/lr": 1e-06,
        "critic/score/mean": 0.5 + step / 100,
        "training/epoch": (step - 1) // 2,
        "response_length/mean": 300.0,
        "timing_s/gen": 20.0,
        "timing_s/reward": 1.0,
        "timing_s/old_log_prob": 5.0,
        "timing_s/ref": 4.0,
        "timing_s/adv": 0.5,
        "timing_s/update_actor": 30.0,
        "timing_s/update_weights": 2.0,
        "timing_s/testing": 12.0,
        "timing_s/step": 74.5,
    }
    return {**metrics, "val-core/openai/gsm8k/acc/mean@1": 0.6} if step == STEPS else metrics


def verl_line(step: int, metrics: dict[str, Any]) -> str:
    """A step as verl's console shows it, NumPy's numbers among Python's."""
    parts = [
        f"{key}:np.float64({value!r})" if "score" in key else f"{key}:{value!r}"
        for key, value in metrics.items()
    ]
    return " - ".join([f"step:{step}", *parts])


def verl_console(prefix: str = RAY) -> list[str]:
    lines = [f"{prefix}{{'actor_rollout_ref': {{'rollout': {{'n': 8}}}}}}"]
    lines += [f"{prefix}{verl_line(0, {'val-core/openai/gsm8k/acc/mean@1': 0.4})}"]
    for step in range(1, STEPS + 1):
        lines += [f"{prefix}Training Progress:  25%|##5   | {step}/{STEPS} [00:{step:02d}<00:04, 74.5s/it]"]
        lines += ["\x1b[36m(WorkerDict pid=4712)\x1b[0m step:9 of the warm-up - nothing to see"]
        lines += [f"{prefix}{verl_line(step, verl_metrics(step))}"]
    return lines


def yaml_lines(metrics: dict[str, Any], depth: int = 0) -> list[str]:
    """A nested mapping as EasyR1's console shows it: by name, with two more blanks a level."""
    lines = []
    for key in sorted(metrics):
        value = metrics[key]
        if isinstance(value, dict):
            lines += [f"{' ' * depth}{key}:", *yaml_lines(value, depth + 2)]
        else:
            lines.append(f"{' ' * depth}{key}: {value}")
    return lines


EASYR1_CONFIG = {
    "data": {"rollout_batch_size": 256, "train_files": "some/where@train", "video_key": "null"},
    "trainer": {"total_epochs": 2, "experiment_name": "one"},
    "worker": {
        "actor": {"global_batch_size": 64, "ppo_epochs": 1, "optim": {"betas": "", "lr": "1.0e-06"}},
        "rollout": {"n": 8},
    },
}
EASYR1_STEP = {
    "actor": {"entropy_loss": 0.412, "grad_norm": 0.5, "kl_loss": "1.0e-04", "pg_loss": -0.01},
    "response_length": {"mean": 200.0},
    "reward": {"accuracy": 0.5, "format": 0.6, "overall": 0.8},
    "timing_s": {
        "adv": 4.0,
        "gen": 80.0,
        "old": 60.0,
        "ref": 62.0,
        "reward": 0.25,
        "step": 506.25,
        "update_actor": 300.0,
    },
}


def easyr1_console(steps: int = STEPS) -> list[str]:
    prefix = "\x1b[36m(Runner pid=77)\x1b[0m "
    lines = ["Config", *yaml_lines(EASYR1_CONFIG), "Start validation..."]
    lines += [
        "[prompt] How long is the side?",
        "[output] As follows.",
        "Step 1",
        "Draw it: there are 3 sides.",
        "[score] 0.5",
    ]
    lines += ["Step 0", *yaml_lines({"val": {"accuracy_reward": 0.3}})]
    for step in range(1, steps + 1):
        block = yaml_lines(EASYR1_STEP)
        block[3:3] = [f"Running step:  50%|#####     | {step}/{steps} [08:26<08:26, 506.25s/it]"]
        lines += ["Start generating batch...", f"Step {step}", *block]
    lines += [f"Step {steps}", *yaml_lines({"val": {"accuracy_reward": 0.45}})]
    lines += ["Final validation metrics:", *yaml_lines({"val": {"accuracy_reward": 0.45}})]
    own = [f"{prefix}{line}" for line in lines]
    return [each for line in own for each in (line, "\x1b[36m(WorkerDict pid=78)\x1b[0m gpu: 0.5")]


def written(path: Path, lines: list[str], end: str = "\n") -> Path:
    path.write_text("\n".join(lines) + end, encoding="utf-8")
    return path


def by_step(log: ForeignLog) -> dict[int, dict[str, Any]]:
    return {record["step"]: dict(record) for record in log.steps}


@pytest.mark.parametrize("prefix", [RAY, "", "2026-01-05 12:00:00 "])
def test_verls_console_tells_what_its_file_tells(tmp_path: Path, prefix: str) -> None:
    console = verl.read(written(tmp_path / "train.log", verl_console(prefix)), SIZES)
    entries = [{"step": 0, "data": {"val-core/openai/gsm8k/acc/mean@1": 0.4}}]
    entries += [{"step": step, "data": verl_metrics(step)} for step in range(1, STEPS + 1)]
    file = verl.read(written(tmp_path / "metrics.jsonl", [json.dumps(entry) for entry in entries]), SIZES)
    assert console.steps == file.steps and console.learning_rate == file.learning_rate == 1e-6
    first = by_step(console)[1]
    assert first["timing_s/step"] == pytest.approx(62.5), "the sum of the work, without validation"
    assert first["timing_s/gen"] == 22.0, "with the weights handed to the sampler"
    assert [record.get("val/accuracy") for record in console.steps] == [0.4, None, None, None, 0.6]


def test_verls_file_logger_may_write_anywhere(tmp_path: Path) -> None:
    """VERL_FILE_LOGGER_PATH names any file; newer versions write it without blanks, and NaN as null."""
    data = {**verl_metrics(1), "actor/pg_loss": None}
    path = written(tmp_path / "one.metrics", [json.dumps({"step": 1, "data": data}, separators=(",", ":"))])
    record = by_step(verl.read(path, SIZES))[1]
    assert "actor/loss" not in record and record["timing_s/update_actor"] == 30.0


def test_easyr1s_console_tells_its_sizes_too(tmp_path: Path) -> None:
    log = easyr1.read(written(tmp_path / "train.log", easyr1_console()), None)
    assert (log.learning_rate, log.epochs) == (1e-6, 2)
    assert [record["step"] for record in log.steps] == list(range(STEPS + 1))
    step = by_step(log)[2]
    assert (step["rollout/n"], step["rollout/questions"], step["actor/updates"]) == (8, 256, 4)
    assert step["timing_s/step"] == pytest.approx(506.25) and step["timing_s/reward"] == 4.25
    assert (step["actor/entropy"], step["actor/kl"]) == (0.412, 1e-4)
    assert [record.get("val/accuracy") for record in log.steps] == [0.3, None, None, None, 0.45]


@pytest.mark.parametrize("trainer", ["verl", "easyr1"])
def test_a_console_becomes_a_run_of_a_study(tmp_path: Path, trainer: str) -> None:
    lines = verl_console() if trainer == "verl" else easyr1_console()
    path = written(tmp_path / "train.log", lines)
    sizes = ["rollouts=8", "questions=32", "updates=4"] if trainer == "verl" else []
    words = ["study=mine", "method=grpo", "model=qwen", "dataset=geometry3k", "seed=0", *sizes]
    assert main(["import", trainer, str(path), f"paths.root={tmp_path}", *words]) == 0
    study = load_study(tmp_path, "mine")
    assert study.set_aside == () and study.steps["step"].tolist() == [1, 2, 3, 4]
    assert len(study.validations) == 2


def test_a_resumed_run_replaces_what_it_does_again(tmp_path: Path) -> None:
    before = [verl_line(step, verl_metrics(step)) for step in (1, 2, 3)]
    resumed = [verl_line(1, {"val-core/openai/gsm8k/acc/mean@1": 0.45})]
    resumed += [verl_line(2, {**verl_metrics(2), "timing_s/gen": 25.0})]
    found = by_step(verl.read(written(tmp_path / "train.log", [*before, *resumed]), SIZES))
    assert sorted(found) == [1, 2], "step 3 is one of the attempt that was given up"
    assert found[2]["timing_s/gen"] == 27.0 and found[1]["val/accuracy"] == 0.45


def test_a_console_that_was_cut_off_ends_with_its_last_whole_step(tmp_path: Path) -> None:
    path = written(
        tmp_path / "verl.log", verl_console()[:-1], "\n" + verl_line(STEPS, verl_metrics(STEPS))[:90]
    )
    assert sorted(by_step(verl.read(path, SIZES))) == list(range(STEPS))
    lines = easyr1_console(3)
    cut = max(number for number, line in enumerate(lines) if line.endswith("  gen: 80.0"))
    path = written(tmp_path / "easyr1.log", lines[: cut + 1])
    assert sorted(by_step(easyr1.read(path, None))) == [0, 1, 2]


def test_a_step_of_easyr1_that_breaks_off_in_the_middle_is_named(tmp_path: Path) -> None:
    lines = easyr1_console()
    at = next(number for number, line in enumerate(lines) if line.endswith("  step: 506.25"))
    heading = max(number for number, line in enumerate(lines[:at]) if line.endswith("Step 1"))
    path = written(tmp_path / "train.log", [*lines[:at], *lines[at + 1 :]])
    with pytest.raises(UserError, match="step 1 has no timing_s/step") as caught:
        easyr1.read(path, None)
    assert caught.value.where == f"{path}, line {heading + 1}"


@pytest.mark.parametrize(
    "spoilt", ["timing_s/gen:2O.0", "timing_s/gen", "timing_s/gen:", "gen:__import__('os')"]
)
def test_a_damaged_line_of_verls_console_is_named(tmp_path: Path, spoilt: str) -> None:
    lines = verl_console()
    lines[7] = lines[7].replace("timing_s/gen:20.0", spoilt)
    path = written(tmp_path / "train.log", lines)
    with pytest.raises(UserError, match="no key with a number") as caught:
        verl.read(path, SIZES)
    assert caught.value.where == f"{path}, line 8"


@pytest.mark.parametrize("spoilt", ["  gen: 8O.0", "  gen 80.0", "  gen: !ruby 1"])
def test_a_damaged_line_of_easyr1s_console_is_named(tmp_path: Path, spoilt: str) -> None:
    lines = easyr1_console()
    (number,) = [number for number, line in enumerate(lines) if line.endswith("  gen: 80.0")][:1]
    lines[number] = lines[number].replace("  gen: 80.0", spoilt)
    path = written(tmp_path / "train.log", lines)
    with pytest.raises(UserError, match="no key with a number") as caught:
        easyr1.read(path, None)
    assert caught.value.where == f"{path}, line {number + 1}"


def test_a_number_that_numpy_wrote_as_an_object_is_passed_over(tmp_path: Path) -> None:
    lines = ["Step 1", *yaml_lines(EASYR1_STEP)]
    odd = [
        "  clipped: !!python/object/apply:numpy._core.multiarray.scalar",
        "  - !!python/object/apply:numpy.dtype",
    ]
    lines[1:2] = ["actor:", *odd, "    args:", "    - i8", "  - !!binary |", "    AQAAAAAAAAA="]
    record = by_step(easyr1.read(written(tmp_path / "train.log", lines), SIZES))[1]
    assert record["actor/entropy"] == 0.412 and record["timing_s/update_actor"] == 300.0


@pytest.mark.parametrize("trainer", [verl, easyr1])
def test_a_file_without_a_step_gives_none(tmp_path: Path, trainer: Any) -> None:
    path = tmp_path / "train.log"
    path.write_bytes(b"\xff\xfe\x00 nothing\nStep 1\nstep:1 - and - so - on\nx: 1\n")
    assert trainer.read(path, SIZES).steps == ()


def test_a_folder_with_several_consoles_asks_for_one(tmp_path: Path) -> None:
    for name in ("a.log", "b.log"):
        written(tmp_path / name, verl_console())
    with pytest.raises(UserError, match=r"not one \*\.log, but a\.log, b\.log"):
        verl.read(tmp_path, SIZES)
