"""Samples that are not those of the results beside them: named, and their run set aside."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from synthetic_study import FASTRL, GRPO, IN_DOMAIN, OUT_OF_DOMAIN, write_study

from analysis.evaluation_records import check_one_checkpoint
from analysis.problems import problems
from analysis.record_error import RecordError
from analysis.study import load_study
from analysis.tables import TABLES
from experiments.run_directory import RunDirectory

Spoil = Callable[[pd.DataFrame], pd.DataFrame]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_study(tmp_path, [replace(GRPO, seeds=3), replace(FASTRL, seeds=3)])
    return tmp_path


def evaluation(root: Path, benchmark: str = IN_DOMAIN) -> Path:
    return root / "runs" / FASTRL.run_id(1) / "eval" / benchmark


def set_aside(root: Path) -> tuple[str, str]:
    """Where and why the one run was set aside; the others are all there, in the paired comparison too."""
    study = load_study(root, "laptop")
    (aside,) = study.set_aside
    assert aside.cell.run_id == FASTRL.run_id(1) and len(study.records) == 5
    assert any(aside.where in each and aside.reason in each for each in problems(study))
    table = TABLES["comparison"].build(study)
    assert {value.n for value in table.rows[1].values if value.value is not None} == {2}
    assert "1 of 6 runs missing or incomplete: 1 set aside." in table.gaps
    folder = f"runs/{FASTRL.run_id(1)}/eval/"
    assert aside.where.startswith(folder)
    return aside.where.removeprefix(folder), aside.reason


def doubled_row(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([frame.iloc[:30], frame.iloc[17:18], frame.iloc[30:]])


def twice(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([frame, frame])


def without_a_row(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.drop(frame.index[17])


def without_a_question(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[frame["question_id"] != "question/002"]


def with_a_question(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([frame, frame[frame["question_id"] == "question/002"].assign(question_id="further")])


def with_a_further_sample(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([frame, frame.iloc[17:18].assign(sample=8)])


def of_another_decoding(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.replace({"decoding": {"t1": "t9"}})


def out_of_order(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.sample(frac=1, random_state=0)


def without_a_decoding(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[frame["decoding"] != "t0_6"]


def regraded(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(correct=frame["correct"].where(frame.index != 17, ~frame["correct"]))


def out_of_range(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(correct=np.where(frame.index == 17, 2.0, frame["correct"]))


def not_a_number(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(correct=np.where(frame.index == 17, np.inf, frame["correct"]))


def without_a_value(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(question_id=frame["question_id"].where(frame.index != 17, None))


@pytest.mark.parametrize(
    ("spoil", "where", "reason"),
    [
        (doubled_row, ", row 31", "sample 1 of question/002, t1, is there twice"),
        (twice, ", row 4353", "sample 0 of question/000, t1, is there twice"),
        (without_a_row, "", "question/002 has 7 samples of t1, results.json says 8 each"),
        (without_a_question, "", "255 questions have samples of t1, results.json has 256"),
        (with_a_question, "", "257 questions have samples of t1, results.json has 256"),
        (
            with_a_further_sample,
            ", row 4353",
            "sample 8 of question/002, t1, is not one of 8",
        ),
        (of_another_decoding, "", "has samples of t9, which results.json has not"),
        (without_a_decoding, "", "no samples of t0_6"),
        (out_of_range, ", row 18", "correct is 2, not within [0, 1]"),
        (not_a_number, ", row 18", "correct is inf, not within [0, 1]"),
        (without_a_value, ", row 18", "question_id is null"),
        (lambda frame: frame.drop(columns="sample"), "", "no column sample"),
        (lambda frame: frame.iloc[:0], "", "no samples of greedy"),
    ],
)
def test_samples_that_are_not_each_there_once_set_their_run_aside(
    root: Path, spoil: Spoil, where: str, reason: str
) -> None:
    path = evaluation(root) / "samples.parquet"
    spoil(pd.read_parquet(path)).to_parquet(path, index=False)
    assert set_aside(root) == (f"{IN_DOMAIN}/samples.parquet{where}", reason)


def test_a_benchmark_that_no_comparison_shows_is_checked_too(root: Path) -> None:
    path = evaluation(root, OUT_OF_DOMAIN) / "samples.parquet"
    twice(pd.read_parquet(path)).to_parquet(path, index=False)
    assert set_aside(root)[0] == f"{OUT_OF_DOMAIN}/samples.parquet, row 4353"


def test_a_file_that_is_cut_short_is_named(root: Path) -> None:
    path = evaluation(root) / "samples.parquet"
    path.write_bytes(path.read_bytes()[:300])
    where, reason = set_aside(root)
    assert where == f"{IN_DOMAIN}/samples.parquet" and "can't be read" in reason


def test_an_accuracy_that_the_samples_do_not_give_is_named(root: Path) -> None:
    path = evaluation(root) / "samples.parquet"
    regraded(pd.read_parquet(path)).to_parquet(path, index=False)
    where, reason = set_aside(root)
    assert where == f"{IN_DOMAIN}/results.json"
    assert reason.startswith("decodings.t1.metrics.accuracy is 0.") and "samples.parquet gives 0." in reason


def test_samples_of_another_checkpoint_than_the_results_are_named(root: Path) -> None:
    path = evaluation(root) / "samples.parquet"
    notes = {"settings_digest": "5e771265", "seed": "1", "checkpoint": "0ther c4eckpoint"}
    pq.write_table(pq.read_table(path).replace_schema_metadata({"notes": json.dumps(notes)}), path)
    assert set_aside(root) == (
        f"{IN_DOMAIN}/samples.parquet",
        "made with checkpoint 0ther c4ec, but results.json with FastRL/1",
    )


def test_notes_that_are_none_are_not_held_against_anything(root: Path) -> None:
    path = evaluation(root) / "samples.parquet"
    for notes in (b"no JSON", b"[1]", json.dumps({"checkpoint": 7}).encode()):
        pq.write_table(pq.read_table(path).replace_schema_metadata({"notes": notes}), path)
        assert load_study(root, "laptop").set_aside == ()


def rewritten(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"benchmark": OUT_OF_DOMAIN}, f"benchmark {OUT_OF_DOMAIN!r}, but the run's is {IN_DOMAIN!r}"),
        ({"seed": 0}, "seed 0, but the run's is 1"),
        ({"n_questions": None}, "n_questions is None, not a count"),
        ({"digests": "none"}, "digests is 'none', not a mapping"),
    ],
)
def test_results_of_another_run_or_benchmark_set_their_run_aside(
    root: Path, changes: dict[str, Any], reason: str
) -> None:
    rewritten(evaluation(root) / "results.json", **changes)
    assert set_aside(root) == (f"{IN_DOMAIN}/results.json", reason)


def test_two_benchmarks_of_a_run_have_the_same_weights_behind_them(root: Path) -> None:
    path = evaluation(root, OUT_OF_DOMAIN) / "results.json"
    digests = json.loads(path.read_text())["digests"]
    rewritten(path, digests={**digests, "checkpoint": "before retraining"})
    where, reason = set_aside(root)
    assert where == f"{OUT_OF_DOMAIN}/results.json"
    assert reason == (
        f"of the checkpoint before ret, while {IN_DOMAIN} was evaluated with FastRL/1; "
        f"run the stages evaluate-{IN_DOMAIN} and evaluate-{OUT_OF_DOMAIN} again"
    )


def test_a_benchmark_that_names_no_weights_hides_no_difference_of_the_others() -> None:
    names = ("first", "second", "third")
    digests = ({}, {"checkpoint": "one"}, {"checkpoint": "two"})
    results = {name: {"digests": each} for name, each in zip(names, digests, strict=True)}
    with pytest.raises(RecordError, match="of the checkpoint two, while second was evaluated with one"):
        check_one_checkpoint(RunDirectory(Path("/runs/run")), {"benchmarks": {}}, results)


def test_rows_may_be_in_any_order(root: Path) -> None:
    path = evaluation(root) / "samples.parquet"
    out_of_order(pd.read_parquet(path)).to_parquet(path, index=False)
    assert load_study(root, "laptop").set_aside == ()


def test_a_count_of_samples_that_no_file_can_hold_is_named(root: Path) -> None:
    path = evaluation(root) / "results.json"
    decodings = json.loads(path.read_text())["decodings"]
    rewritten(path, decodings={**decodings, "greedy": {**decodings["greedy"], "samples": 10**30}})
    where, reason = set_aside(root)
    assert where == f"{IN_DOMAIN}/samples.parquet"
    assert reason == f"question/000 has 1 samples of greedy, results.json says {10**30} each"


def test_question_ids_may_be_numbers_or_categories(root: Path) -> None:
    path = evaluation(root) / "samples.parquet"
    frame = pd.read_parquet(path)
    numbers = frame.assign(question_id=frame["question_id"].str.removeprefix("question/").astype(int))
    numbers.to_parquet(path, index=False)
    assert load_study(root, "laptop").set_aside == ()
    frame["question_id"] = frame["question_id"].astype("category").cat.add_categories("never asked")
    table = pa.Table.from_pandas(frame, preserve_index=False)
    pq.write_table(table, path, row_group_size=100)
    assert load_study(root, "laptop").set_aside == ()
