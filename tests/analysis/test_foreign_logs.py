"""Logs of EasyR1, TRL and verl become runs that reports read like our own."""

from __future__ import annotations

import json
import math
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from analysis.comparison import read
from analysis.foreign import easyr1
from analysis.measures import training_time
from analysis.problems import problems
from analysis.report import build_report
from analysis.step_frames import STAGES
from analysis.study import load_study
from analysis.tracking.compare import compare_runs
from analysis.tracking.store import default_uri
from analysis.tracking.sync import sync_study
from experiments.cli import main
from experiments.errors import UserError
from experiments.plan import read_plan

EASYR1_CONFIG = {
    "data": {"rollout_batch_size": 256},
    "worker": {
        "rollout": {"n": 8},
        "actor": {"global_batch_size": 64, "ppo_epochs": 1, "optim": {"lr": 1e-6}},
    },
    "trainer": {"total_epochs": 2},
}
STEPS = 6
ENGINES = Path(__file__).parents[1] / "engines"


def easyr1_line(step: int, **more: Any) -> dict[str, Any]:
    """A step as EasyR1's file logger nests it; its `step` holds validation and checkpoints too."""
    timing = {"gen": 80.0, "reward": 0.25, "adv": 4.0, "old": 60.0, "ref": 62.0, "update_actor": 300.0}
    return {
        "step": step,
        "actor": {"entropy_loss": 0.4, "pg_loss": -0.01, "grad_norm": 0.5, "lr": 1e-6, "kl_loss": 0.001},
        "reward": {"overall": 0.8, "accuracy": 0.5, "format": 0.6},
        "response_length": {"mean": 200.0},
        "timing_s": {
            **timing,
            "validation": 30.0,
            "save_checkpoint": 5.0,
            "step": sum(timing.values()) + 35.0,
        },
        "perf": {"total_num_tokens": 600000},
        **more,
    }


@pytest.fixture
def easyr1_logs(tmp_path: Path) -> Path:
    folder = tmp_path / "easyr1"
    folder.mkdir()
    (folder / "experiment_config.json").write_text(json.dumps(EASYR1_CONFIG))
    lines: list[dict[str, Any]] = [{"step": 0, "val": {"accuracy_reward": 0.3, "reward_score": 0.5}}]
    lines += [easyr1_line(step) for step in range(1, STEPS + 1)]
    lines += [{"step": STEPS, "val": {"accuracy_reward": 0.45, "reward_score": 0.7}}]  # the last step again
    (folder / "experiment_log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.fixture
def trl_logs(tmp_path: Path) -> Path:
    history: list[dict[str, Any]] = []
    for step in (2, 4, 6):  # logging_steps=2
        entry = {"step": step, "epoch": step / 3, "loss": 0.01, "grad_norm": 0.4, "learning_rate": 1e-6}
        entry |= {"reward": 1.0, "reward_std": 0.3, "rewards/accuracy_reward/mean": 0.5, "entropy": 0.3}
        history.append({**entry, "completions/mean_length": 100.0, "step_time": 7.5, "kl": 0.001})
    history.append({"step": 6, "epoch": 2.0, "eval_reward": 1.1, "eval_rewards/accuracy_reward/mean": 0.6})
    history.append({"step": 6, "epoch": 2.0, "train_runtime": 60.0, "train_loss": 0.01})
    folder = tmp_path / "trl"
    (folder / "checkpoint-6").mkdir(parents=True)
    state = {"global_step": 6, "num_train_epochs": 2, "log_history": history}
    (folder / "checkpoint-6" / "trainer_state.json").write_text(json.dumps(state))
    return folder


@pytest.fixture
def verl_logs(tmp_path: Path) -> Path:
    lines: list[dict[str, Any]] = [{"step": 0, "data": {"val-core/openai/gsm8k/acc/mean@1": 0.4}}]
    for step in range(1, STEPS + 1):
        data = {
            "timing_s/gen": 20.0,
            "timing_s/reward": 1.0,
            "timing_s/old_log_prob": 5.0,
            "timing_s/ref": 5.0,
        }
        data |= {"timing_s/adv": 0.1, "timing_s/update_actor": 30.0, "timing_s/testing": 12.0}
        data |= {"timing_s/step": 73.1, "response_length/mean": 300.0, "actor/entropy": 0.2}
        data |= {"training/epoch": (step - 1) // 3, "critic/score/mean": 0.6, "actor/grad_norm": 0.1}
        lines.append({"step": step, "data": data})
    lines[-1]["data"]["val-core/openai/gsm8k/acc/mean@1"] = 0.7
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


SIZES = ["rollouts=8", "questions=32", "updates=4"]


def imported(root: Path, trainer: str, logs: Path, *more: str, seed: int = 0) -> int:
    words = [
        f"paths.root={root}",
        "study=mine",
        "method=grpo",
        "model=qwen",
        "dataset=geometry3k",
        f"seed={seed}",
    ]
    return main(["import", trainer, str(logs), *words, *more])


def test_easyr1_seconds_are_normalised(tmp_path: Path, easyr1_logs: Path) -> None:
    assert imported(tmp_path, "easyr1", easyr1_logs, "hardware=4 x H20") == 0
    study = load_study(tmp_path, "mine")
    assert study.set_aside == () and study.unfinished == ()
    step = study.steps.iloc[0]
    assert step["timing_s/reward"] == 4.25, "the wait for rewards, which EasyR1 counts as advantages"
    assert step["timing_s/adv"] == 0
    assert step["timing_s/step"] == pytest.approx(80 + 4.25 + 60 + 62 + 300), "without validation, checkpoint"
    assert (step["rollout/n"], step["rollout/questions"], step["actor/updates"]) == (8, 256, 4)
    assert step["tokens/generated"] == 200 * 8 * 256
    assert study.steps["epoch"].tolist() == [0, 0, 0, 1, 1, 1]
    assert study.validations["accuracy"].tolist() == [0.3, 0.45]
    assert study.records[study.plan.cells[0].run_id].hardware.startswith("4 × H20")


@pytest.mark.parametrize("name", ["easyr1_experiment_log.jsonl", "easyr1_dapo_experiment_log.jsonl"])
def test_a_log_of_the_real_trainer_adds_up(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "real"
    folder.mkdir()
    shutil.copy(ENGINES / name, folder / "experiment_log.jsonl")
    assert imported(tmp_path, "easyr1", folder) == 0
    study = load_study(tmp_path, "mine")
    assert study.set_aside == () and study.steps["step"].tolist() == [1, 2, 3, 4, 5, 6]
    parts = study.steps[[f"timing_s/{stage}" for stage in STAGES]].sum(axis=1)
    assert parts.tolist() == pytest.approx(study.steps["timing_s/step"].tolist())
    lines = [json.loads(line) for line in (ENGINES / name).read_text().splitlines()]
    whole = [line["timing_s"]["step"] for line in lines if "timing_s" in line]
    besides = study.steps[["timing_s/validation", "timing_s/save_checkpoint"]].sum(axis=1)
    assert (study.steps["timing_s/step"] + besides).tolist() == pytest.approx(whole, rel=0.1)
    assert (study.steps["timing_s/select"] > 0).any() or "dapo" in name
    assert study.validations["step"].tolist()[-1] == 6


def test_an_imported_run_is_known_as_one_and_its_speed_is_refused(
    tmp_path: Path, easyr1_logs: Path, verl_logs: Path
) -> None:
    imported(tmp_path, "easyr1", easyr1_logs)
    imported(tmp_path, "verl", verl_logs, "label=verl", *SIZES)
    study = load_study(tmp_path, "mine")
    assert "1 of 2 runs were imported from logs of easyr1" in problems(study)[0]
    assert "1 of 2 runs were imported from logs of verl" in problems(study)[1]
    speed = read(study, training_time(study)).speed(study.arms[1], study.baseline)
    assert (speed.value, speed.note) == (None, "times on unknown hardware can't be compared")
    sync_study(tmp_path, "mine", None)
    compared = compare_runs(default_uri(tmp_path), "mine", "timing_s/step", ["source"])
    assert {group.name for group in compared.groups} == {"imported from easyr1", "imported from verl"}


def test_trl_means_stand_for_each_of_their_steps(tmp_path: Path, trl_logs: Path) -> None:
    assert imported(tmp_path, "trl", trl_logs, *SIZES) == 0
    study = load_study(tmp_path, "mine")
    assert study.set_aside == ()
    assert study.steps["step"].tolist() == [1, 2, 3, 4, 5, 6]
    assert study.steps["timing_s/step"].tolist() == [7.5] * 6
    assert study.steps["timing_s/gen"].isna().all(), "not told, and so not zero"
    assert study.validations["accuracy"].tolist() == [0.6]


def test_verl_steps_are_the_sum_of_their_work(tmp_path: Path, verl_logs: Path) -> None:
    assert imported(tmp_path, "verl", verl_logs, *SIZES) == 0
    study = load_study(tmp_path, "mine")
    assert study.set_aside == ()
    assert study.steps["timing_s/step"].tolist() == pytest.approx([61.1] * 6)
    assert study.steps["timing_s/old"].tolist() == [5.0] * 6
    assert study.validations["accuracy"].tolist() == [0.4, 0.7]


def test_runs_of_every_trainer_are_reported_together(
    tmp_path: Path, easyr1_logs: Path, trl_logs: Path, verl_logs: Path
) -> None:
    imported(tmp_path, "easyr1", easyr1_logs, "label=EasyR1 <script>", "hardware=4 x H20")
    imported(tmp_path, "trl", trl_logs, "label=TRL % _ $x$", *SIZES)
    imported(tmp_path, "verl", verl_logs, "label=verl", "hardware=4 x H20", *SIZES)
    page = build_report(tmp_path, "mine", formats=("md", "html", "csv")).with_suffix(".md").read_text()
    assert "3 trained of 3 planned" in page
    assert "times on unknown hardware can't be compared" in page
    assert "<script>alert" not in page


def test_the_same_log_again_is_the_same_run_and_a_longer_one_takes_its_place(
    tmp_path: Path, easyr1_logs: Path
) -> None:
    imported(tmp_path, "easyr1", easyr1_logs)
    before = read_plan(tmp_path, "mine")
    imported(tmp_path, "easyr1", easyr1_logs)
    assert read_plan(tmp_path, "mine") == before
    with (easyr1_logs / "experiment_log.jsonl").open("a") as log:
        log.write(json.dumps(easyr1_line(STEPS + 1)) + "\n")
    imported(tmp_path, "easyr1", easyr1_logs)
    (cell,) = read_plan(tmp_path, "mine").cells
    assert cell.run_id != before.cells[0].run_id
    imported(tmp_path, "easyr1", easyr1_logs, seed=1)
    assert len(read_plan(tmp_path, "mine").arms) == 1


def test_a_log_that_a_restart_began_anew_is_joined_with_the_one_that_was_kept(easyr1_logs: Path) -> None:
    log = easyr1_logs / "experiment_log.jsonl"
    log.rename(easyr1_logs / "experiment_log_1.jsonl")
    log.write_text("".join(json.dumps(easyr1_line(step)) + "\n" for step in (5, 6, 7)))
    assert [record["step"] for record in easyr1.read(easyr1_logs, None).steps] == list(range(8))


def test_logs_that_were_kept_are_in_order_after_a_copy_that_kept_no_times(easyr1_logs: Path) -> None:
    log = easyr1_logs / "experiment_log.jsonl"
    log.rename(easyr1_logs / "experiment_log_1.jsonl")
    names = ["experiment_log_2.jsonl", "experiment_log_10.jsonl", log.name]
    for age, (name, entropy) in enumerate(zip(names, (0.2, 0.3, 0.5), strict=True)):
        line = easyr1_line(STEPS)
        line["actor"]["entropy_loss"] = entropy
        (easyr1_logs / name).write_text(json.dumps(line) + "\n")
        os.utime(easyr1_logs / name, (100 - age, 100 - age))
    assert easyr1.read(easyr1_logs, None).steps[-1]["actor/entropy"] == 0.5
    log.unlink()
    assert easyr1.read(easyr1_logs, None).steps[-1]["actor/entropy"] == 0.3


def test_a_cut_last_line_is_left_out_and_a_damaged_one_named(easyr1_logs: Path) -> None:
    log = easyr1_logs / "experiment_log.jsonl"
    whole = log.read_text()
    log.write_text(whole + '{"step": 7, "act')
    assert len(easyr1.read(easyr1_logs, None).steps) == STEPS + 1
    log.write_text(whole + '{"step": 7, "act\n')
    with pytest.raises(UserError) as caught:
        easyr1.read(easyr1_logs, None)
    assert caught.value.where == f"{log}, line 9"


@pytest.mark.parametrize(
    ("trainer", "more", "message"),
    [
        ("verl", [], "does not tell the sizes"),
        ("verl", ["rollouts=8"], "Only rollouts is given"),
        ("verl", [*SIZES, "hardware=a big one"], "hardware"),
        ("verl", [*SIZES, "method=../../etc"], "no name"),
        ("openrlhf", SIZES, "no trainer"),
    ],
)
def test_what_is_missing_or_wrong_is_said(
    tmp_path: Path,
    verl_logs: Path,
    capsys: pytest.CaptureFixture[str],
    trainer: str,
    more: list[str],
    message: str,
) -> None:
    assert imported(tmp_path, trainer, verl_logs, *more) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("step", "more", "reason"),
    [
        (
            3,
            {"timing_s": {"gen": -5.0, "step": 1.0}},
            "Step 3 of the log can't be used: timing_s/gen is -5.0",
        ),
        (5, {"step": 7}, "Step 7 of the log can't be used: step 7 follows step 4"),
        (4, {"val": {"accuracy_reward": math.nan}}, "Step 4 of the log can't be used: val/accuracy is nan"),
    ],
)
def test_a_log_that_a_report_would_refuse_is_refused_here(
    tmp_path: Path,
    easyr1_logs: Path,
    capsys: pytest.CaptureFixture[str],
    step: int,
    more: dict[str, Any],
    reason: str,
) -> None:
    log = easyr1_logs / "experiment_log.jsonl"
    lines = [
        json.dumps({**easyr1_line(each), **(more if each == step else {})}) for each in range(1, step + 1)
    ]
    log.write_text("".join(f"{line}\n" for line in lines))
    assert imported(tmp_path, "easyr1", easyr1_logs) == 1
    error = capsys.readouterr().err
    assert reason in error and str(log) in error
    assert not (tmp_path / "runs").exists()
