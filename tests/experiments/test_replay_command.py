"""`fastrl replay`: from files of any trainer to a table, a record and a figure."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recorded_run import QUESTIONS, STEPS, N, recorded_run, step_rollouts

from experiments.cli import main
from experiments.errors import UserError
from experiments.offline import files
from experiments.offline.costs import named_profile
from experiments.offline.rollout_format import named_format
from experiments.offline.rows import steps_of
from experiments.offline.sources import file_rollouts, run_rollouts
from fastrl.replay.predict import means_of_counts, predict
from fastrl.rollouts import Rollouts

IDS = ("a", "b", "c", "d")


def equal(found: Rollouts, expected: Rollouts) -> bool:
    return found.question_ids == expected.question_ids and all(
        np.array_equal(getattr(found, name), getattr(expected, name))
        for name in ("offsets", "tokens", "token_offsets", "rewards")
    )


def records_of(step: int, rollouts: Rollouts) -> list[dict[str, Any]]:
    """One record a trajectory, in the order of the groups."""
    edges = rollouts.token_offsets
    return [
        {
            "step": step,
            "prompt": rollouts.question_ids[group],
            "completion_ids": rollouts.tokens[edges[i] : edges[i + 1]].tolist(),
            "reward": float(rollouts.rewards[i]),
        }
        for i, group in enumerate(rollouts.group_of)
    ]


def write_lines(path: Path, records: Sequence[Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def read(path: Path, columns: dict[str, str] | None = None, encode: Any = None) -> list[tuple[int, Rollouts]]:
    file = files.RolloutFile(path, named_format("trl", columns or {}), encode)
    return [(step, rollouts) for step, rollouts, _ in steps_of(file.batches())]


def test_a_run_gives_back_what_it_recorded_with_its_epochs(tmp_path: Path) -> None:
    recorded = run_rollouts(recorded_run(tmp_path))
    steps = list(recorded.steps())
    assert [(step.step, step.epoch) for step in steps] == [(1, 0), (2, 0), (3, 1), (4, 1)]
    assert recorded.course.progress == (0.5, 1.0)
    for step in steps:
        assert equal(step.rollouts, step_rollouts(step.step, step.rollouts.question_ids))
        assert np.array_equal(step.accuracy, step.rollouts.rewards)


@pytest.mark.parametrize("batch_rows", [1, 7, 4096])
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_rows_become_steps_whatever_the_batches(
    tmp_path: Path, suffix: str, batch_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "BATCH_ROWS", batch_rows)
    expected = {step: step_rollouts(step, IDS) for step in (1, 2)}
    records = [record for step, rollouts in expected.items() for record in records_of(step, rollouts)]
    path = tmp_path / f"completions{suffix}"
    if suffix == ".jsonl":
        write_lines(path, records)
    else:
        pq.write_table(pa.Table.from_pylist(records), path, row_group_size=10)
    found = read(path)
    assert [step for step, _ in found] == [1, 2]
    assert all(equal(rollouts, expected[step]) for step, rollouts in found)


def test_trajectories_of_a_group_may_lie_apart(tmp_path: Path) -> None:
    expected = step_rollouts(1, IDS)
    records = records_of(1, expected)
    apart = [records[group * N + i] for i in range(N) for group in range(QUESTIONS)]
    ((_, found),) = read(write_lines(tmp_path / "dump.jsonl", apart))
    assert equal(found, expected)


def test_a_group_column_keeps_two_visits_of_a_question_apart(tmp_path: Path) -> None:
    record = {"step": 1, "prompt": "a", "completion_ids": [1], "reward": 0}
    records = [{**record, "uid": uid} for uid in ("x", "x", "y", "y")]
    path = write_lines(tmp_path / "dump.jsonl", records)
    assert [r.group_sizes.tolist() for _, r in read(path)] == [[4]]
    assert [r.group_sizes.tolist() for _, r in read(path, {"group": "uid"})] == [[2, 2]]


def test_text_is_tokenised_and_conversations_are_joined(tmp_path: Path) -> None:
    messages = [{"role": "assistant", "content": "bb"}, {"role": "tool", "content": "c"}]
    records = [
        {"step": 0, "prompt": [{"role": "user", "content": "q"}], "completion": text, "accuracy_reward": 1}
        for text in ("a", messages)
    ]
    path = write_lines(tmp_path / "dump.jsonl", records)
    ((_, found),) = read(
        path, {"reward": "accuracy_reward"}, lambda texts: [list(map(ord, t)) for t in texts]
    )
    assert found.tokens.tolist() == [ord(letter) for letter in "abbc"]
    assert found.group_sizes.tolist() == [2]


RECORD = {"step": 1, "prompt": "a", "completion_ids": [1], "reward": 0.5}


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([{"step": 1, "prompt": "a", "completion_ids": [1]}], "No column holds the reward"),
        ([{"step": 1, "prompt": "a", "reward": 1}], "No column holds the tokens"),
        ([{"step": 1, "prompt": "a", "completion": "x", "reward": 1}], "holds the text of responses"),
        ([RECORD, {**RECORD, "prompt": None}], "A record has no prompt"),
        ([{**RECORD, "step": 1.5}], "The step 1.5 is no whole number"),
        ([{**RECORD, "reward": "good"}], "'good' is no number"),
        ([{**RECORD, "completion_ids": ["x"]}], "no list of token ids"),
        ([{**RECORD, "step": 2}, RECORD], "Step 1 follows step 2"),
        (["text"], "This is a str"),
    ],
)
def test_damaged_or_foreign_records_are_refused(tmp_path: Path, records: Sequence[Any], message: str) -> None:
    path = write_lines(tmp_path / "dump.jsonl", records)
    with pytest.raises(UserError, match=message) as raised:
        read(path)
    assert "dump.jsonl" in raised.value.where


def test_a_file_cut_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "dump.jsonl"
    path.write_text(json.dumps(RECORD) + '\n{"step": 1, "pro', encoding="utf-8")
    with pytest.raises(UserError, match="no JSON") as raised:
        read(path)
    assert raised.value.where.endswith("line 2")
    broken = tmp_path / "step_1.parquet"
    broken.write_bytes(b"PAR1")
    with pytest.raises(UserError, match="can't be read as parquet"):
        read(broken)


def test_steps_per_epoch_gives_files_a_course(tmp_path: Path) -> None:
    records = [record for step in range(5, 10) for record in records_of(step, step_rollouts(step, IDS))]
    paths = [write_lines(tmp_path / "dump.jsonl", records)]
    recorded = file_rollouts(paths, named_format("trl", {}), None, 2)
    assert [step.epoch for step in recorded.steps()] == [0, 0, 1, 1, 2]
    assert recorded.course.progress == (2 / 5, 4 / 5)


def test_the_command_writes_a_table_a_record_rows_and_a_figure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, out = recorded_run(tmp_path), tmp_path / "out"
    words = ["replay", str(run.path), "--tau", "0.8,1", "--methods", "random_50", "--output", str(out)]
    assert main(words) == 0
    text = capsys.readouterr().out
    record = json.loads((out / "replay.json").read_text())
    methods = {method["label"]: method for method in record["methods"]}
    assert list(methods) == ["GRPO", "FastRL τ=0.8", "FastRL τ=1", "Random 50 %"]
    assert all(label in text for label in methods)
    assert methods["GRPO"]["speed"] == 1
    assert methods["GRPO"]["kept_per_question"] == N
    assert methods["Random 50 %"]["kept_per_question"] == N / 2
    assert methods["FastRL τ=1"]["kept_per_question"] <= methods["FastRL τ=0.8"]["kept_per_question"] < N
    tokens = [len(step_rollouts(step, IDS).tokens) for step in range(1, STEPS + 1)]
    assert methods["GRPO"]["step"] == pytest.approx(7 * np.mean(tokens))  # a second a token and stage
    for method in record["methods"]:
        assert math.fsum(method["kept_shares"]) == pytest.approx(1)
        assert method["step"] == pytest.approx(sum(method["stages"].values()))
    rows = list(csv.DictReader((out / "replay.csv").open()))
    assert {row["row"] for row in rows} == set(methods)
    assert {row["source"] for row in rows} == {"simulated"}
    assert (out / "replay.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "replay.pdf").read_bytes().startswith(b"%PDF")


def test_a_run_without_rollouts_names_the_setting(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = recorded_run(tmp_path, recorded=False)
    assert main(["replay", str(run.path)]) == 2
    assert "training.record_rollouts_every=1" in capsys.readouterr().err


def test_nan_rewards_are_refused_by_question(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_lines(tmp_path / "dump.jsonl", [RECORD, {**RECORD, "reward": None}])
    assert main(["replay", str(path), "--format", "trl", "--profile", "h20_qwen2_5_vl_7b"]) == 1
    assert "NaN or infinite, in question 'a'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere.jsonl"], "no such file"),
        (["--profile", "h20"], "name a run's folder"),
        (["--profile", "h2", "--kept", "3", "--sampled", "7"], 'no cost profile "h2"'),
        (["--profile", "h20_qwen2_5_vl_7b", "--kept", "9", "--sampled", "7"], "0 < kept <= sampled"),
        (["dump.jsonl", "--format", "tlr"], 'did you mean "trl"'),
        (["dump.jsonl", "columns.rewrad=score"], 'did you mean "reward"'),
        (["dump.jsonl", "--format", "trl"], "No stage costs are known"),
    ],
)
def test_wrong_words_say_the_way_out(
    words: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "dump.jsonl", [RECORD])
    assert main(["replay", *words]) == 2
    assert message in capsys.readouterr().err


def test_the_papers_figures_give_the_papers_speed() -> None:
    """Table 8: kept 3.03 and G 7.34 take 249.66 s a step instead of 534.96 s, 2.14 times as fast."""
    profile = named_profile("h20_qwen2_5_vl_7b")
    assert profile.costs.source == "derived"
    whole = means_of_counts("GRPO", profile.questions, profile.rollouts, profile.rollouts)
    pruned = means_of_counts("FastRL", profile.questions, 7.34, 3.03)
    grpo, fastrl = predict(profile.costs, whole, [pruned])
    assert fastrl.speed == pytest.approx(2.14, rel=0.02)
    assert grpo.step == pytest.approx(534.96)
    assert fastrl.step == pytest.approx(249.66, rel=0.02)
    assert fastrl.stages["update_actor"] == pytest.approx(121.07, rel=0.02)
    assert grpo.stages["gen"] / fastrl.stages["gen"] == pytest.approx(1.09, rel=0.02)
