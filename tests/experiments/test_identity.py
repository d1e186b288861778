"""Run identity: what training reads decides it, and nothing else does."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.compose import compose_cell
from experiments.identity import (
    IDENTITY_KEYS,
    TRANSIENT_KEYS,
    arm_id,
    canonical_json,
    flattened,
    identity_part,
    run_id,
)

FASTRL: dict[str, Any] = compose_cell(["method=fastrl", "seed=3"])
NAMES = ("method.name", "model.name", "dataset.name")
IDENTITY_FIELDS = sorted(flattened(identity_part(FASTRL)).keys() - set(NAMES))

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=12,
)


def with_value(config: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(config)
    *parents, last = key.split(".")
    section = changed
    for parent in parents:
        section = section[parent]
    section[last] = value
    return changed


def shuffled(value: Any, order: st.DataObject) -> Any:
    if isinstance(value, dict):
        return {key: shuffled(value[key], order) for key in order.draw(st.permutations(list(value)))}
    return value


def test_run_id_names_method_model_dataset_and_seed() -> None:
    prefix, _, digest = run_id(FASTRL).rpartition("-")
    assert prefix == "fastrl-laptop_qwen2_5_vl-laptop_figures-s3"
    assert len(digest) == 10
    assert int(digest, 16) >= 0


def test_every_section_of_a_config_is_either_identity_or_transient() -> None:
    assert set(FASTRL) == {*IDENTITY_KEYS, *TRANSIENT_KEYS}


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_order_of_keys_does_not_matter(data: st.DataObject) -> None:
    other = shuffled(FASTRL, data)
    assert run_id(other) == run_id(FASTRL)
    assert arm_id(other) == arm_id(FASTRL)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(TRANSIENT_KEYS), json_values)
def test_transient_sections_do_not_matter(key: str, value: Any) -> None:
    other = {**FASTRL, key: value}
    assert run_id(other) == run_id(FASTRL)


@pytest.mark.parametrize("section", ["method", "model", "dataset"])
def test_labels_of_tables_do_not_matter(section: str) -> None:
    assert run_id(with_value(FASTRL, f"{section}.label", "another name")) == run_id(FASTRL)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(IDENTITY_FIELDS), json_values)
def test_every_identity_field_matters(key: str, value: Any) -> None:
    other = with_value(FASTRL, key, value)
    changed = canonical_json(flattened(identity_part(other))) != canonical_json(
        flattened(identity_part(FASTRL))
    )
    assert (run_id(other) != run_id(FASTRL)) == changed


@pytest.mark.parametrize("key", NAMES)
def test_names_matter(key: str) -> None:
    assert run_id(with_value(FASTRL, key, "other")).rpartition("-")[2] != run_id(FASTRL).rpartition("-")[2]


def test_seeds_of_an_arm_share_the_arm_and_not_the_run() -> None:
    other = compose_cell(["method=fastrl", "seed=4"])
    assert arm_id(other) == arm_id(FASTRL)
    assert run_id(other) != run_id(FASTRL)


def test_an_override_that_restates_the_default_is_the_same_run() -> None:
    restated = compose_cell(["method=fastrl", "seed=3", f"fastrl.tau={FASTRL['method']['selector']['tau']}"])
    assert run_id(restated) == run_id(FASTRL)


def test_a_whole_number_for_a_float_is_the_same_run() -> None:
    assert run_id(compose_cell(["method=fastrl", "fastrl.tau=1"])) == run_id(
        compose_cell(["method=fastrl", "fastrl.tau=1.0"])
    )


def test_changing_another_methods_shorthand_is_the_same_run() -> None:
    assert run_id(compose_cell(["method=grpo", "fastrl.tau=0.5"])) == run_id(compose_cell(["method=grpo"]))


@pytest.mark.parametrize("override", ["paths.root=elsewhere", "tracking=none", "cluster.workers=1"])
def test_where_a_run_is_done_is_no_part_of_it(override: str) -> None:
    assert run_id(compose_cell(["method=fastrl", "seed=3", override])) == run_id(FASTRL)


def test_canonical_json_reads_back_as_the_same_value() -> None:
    assert json.loads(canonical_json(FASTRL)) == FASTRL


def test_canonical_json_refuses_nan() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"tau": float("nan")})
