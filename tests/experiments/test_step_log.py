"""The step log: whole lines, each step once, cut back to the checkpoint before training goes on."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.errors import UserError
from experiments.step_log import append_step, cut_back, read_steps


def log_with(path: Path, steps: range) -> Path:
    for step in steps:
        append_step(path, {"step": step, "reward/mean": step / 3})
    return path


def test_appended_records_are_read_back_exactly(tmp_path: Path) -> None:
    path = log_with(tmp_path / "steps.jsonl", range(5))
    assert read_steps(path) == [{"step": step, "reward/mean": step / 3} for step in range(5)]


def test_a_record_that_is_still_being_written_is_left_out(tmp_path: Path) -> None:
    path = log_with(tmp_path / "steps.jsonl", range(3))
    with path.open("a") as stream:
        stream.write('{"step": 3, "rew')
    assert [record["step"] for record in read_steps(path)] == [0, 1, 2]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_value_that_is_not_finite_is_refused_with_its_key(tmp_path: Path, value: float) -> None:
    path = log_with(tmp_path / "steps.jsonl", range(2))
    with pytest.raises(ValueError, match=r"actor/loss is (nan|inf) at step 2"):
        append_step(path, {"step": 2, "actor/loss": value})
    assert len(read_steps(path)) == 2


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{oops}", "Expecting"),
        ("[1]", "not an object"),
        ('{"loss": 1}', "`step`"),
        ('{"step": 2}', "step 2 follows step 2"),
    ],
)
def test_a_damaged_record_is_named_with_file_and_line(tmp_path: Path, line: str, reason: str) -> None:
    path = log_with(tmp_path / "steps.jsonl", range(3))
    with path.open("a") as stream:
        stream.write(f"{line}\n")
    with pytest.raises(UserError, match=reason) as damaged:
        read_steps(path)
    assert damaged.value.where == f"{path}, line 4"


@given(last=st.integers(0, 8), kept=st.integers(0, 8), torn=st.booleans())
def test_cutting_back_keeps_exactly_the_steps_up_to_the_checkpoint(
    tmp_path_factory: pytest.TempPathFactory, last: int, kept: int, torn: bool
) -> None:
    path = tmp_path_factory.mktemp("log") / "steps.jsonl"
    whole = [f'{{"step": {step}}}\n'.encode() for step in range(last + 1)]
    path.write_bytes(b"".join(whole) + (b'{"step": 9' if torn else b""))
    if kept > last:
        with pytest.raises(
            UserError, match=f"The checkpoint is of step {kept}, but the step log ends at step {last}"
        ):
            cut_back(path, kept)
        return
    expected = whole[: kept + 1] if kept else []
    assert cut_back(path, kept) == len(whole) - len(expected)
    assert path.read_bytes() == b"".join(expected)


def test_damage_after_the_checkpoint_is_cut_away(tmp_path: Path) -> None:
    path = log_with(tmp_path / "steps.jsonl", range(1, 4))
    with path.open("a") as stream:
        stream.write("{oops}\n")
    cut_back(path, 3)
    assert [record["step"] for record in read_steps(path)] == [1, 2, 3]


def test_cutting_back_a_log_that_is_not_there(tmp_path: Path) -> None:
    assert cut_back(tmp_path / "steps.jsonl", 0) == 0
    with pytest.raises(UserError, match="ends at step 0"):
        cut_back(tmp_path / "steps.jsonl", 4)
