"""Names and values of metrics as MLflow takes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.tracking.names import (
    evaluation_metrics,
    metric_name,
    step_metrics,
)


@given(st.lists(st.text(min_size=1), min_size=1, max_size=4))
def test_a_metric_name_has_letters_digits_underscores_and_slashes_only(parts: list[str]) -> None:
    assert set(metric_name(*parts)) <= set("/_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")


def test_only_numbers_become_metrics() -> None:
    record = {"step": 3, "time": 1.5, "epoch": 1, "rollout/n": 8, "note": "x", "flag": True, "val@k=8": 0.5}
    assert step_metrics(record) == {"epoch": 1.0, "rollout/n": 8.0, "val_k_8": 0.5}


def test_two_keys_with_one_metric_name_are_refused() -> None:
    with pytest.raises(ValueError, match="a_b"):
        step_metrics({"step": 1, "a=b": 1.0, "a@b": 2.0})


def test_a_value_that_is_no_number_is_refused() -> None:
    results = {"benchmark": "b", "decodings": {"t1": {"metrics": {"accuracy": float("nan")}}}}
    with pytest.raises(ValueError, match="eval/b/t1/accuracy is nan"):
        evaluation_metrics(results)
