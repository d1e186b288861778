"""The grounding reward: boxes from untrusted text, their overlap, and the three parts of the total."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_rewards_benchmarks import reward_config, reward_file

from eval.rewards import build_reward
from eval.rewards.bounding_boxes import BoundingBox, intersection_over_union, last_box
from eval.rewards.grounding import Grounding
from fastrl.rewards import Reward
from fastrl.rollouts import Question

REWARD = Grounding("think_then_answer", iou_weight=1.0, centre_weight=1.0, format_weight=0.5)
GOLD = "[100, 100, 200, 200]"
SIDES = st.integers(0, 1000)


@st.composite
def boxes(draw: st.DrawFn) -> BoundingBox:
    left, right = sorted((draw(SIDES), draw(SIDES)))
    top, bottom = sorted((draw(SIDES), draw(SIDES)))
    return BoundingBox(left, top, right, bottom)


def reward_of(response: str, gold: str = GOLD) -> Reward:
    (reward,) = REWARD([Question("q", "", gold)], [response])
    return reward


def answered(text: str) -> str:
    return f"<think>there</think><answer>{text}</answer>"


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        (answered("[100, 100, 200, 200]"), Reward(2.5, 1.0, 1.0)),
        ("[100, 100, 200, 200]", Reward(2.0, 1.0, 0.0)),
        (answered("[100, 100, 200, 150]"), Reward(2.0, 1.0, 1.0)),
        (answered("[300, 300, 400, 400]"), Reward(0.5, 0.0, 1.0)),
        (answered("[150, 150, 150, 150]"), Reward(1.5, 1.0, 1.0)),
        (answered("no box"), Reward(0.0, 0.0, 0.0)),
        (answered("[200, 200, 100, 100]"), Reward(0.0, 0.0, 0.0)),
        ("<think>[100, 100, 200, 200]</think><answer></answer>", Reward(0.0, 0.0, 0.0)),
        ("", Reward(0.0, 0.0, 0.0)),
    ],
)
def test_total_is_overlap_plus_centre_plus_half_of_format(response: str, expected: Reward) -> None:
    assert reward_of(response) == expected


@pytest.mark.parametrize(
    ("text", "box"),
    [
        ("[1, 2, 3, 4]", BoundingBox(1, 2, 3, 4)),
        ("(1,2),(3,4)", BoundingBox(1, 2, 3, 4)),
        ("<|box_start|>(1,2),(3,4)<|box_end|>", BoundingBox(1, 2, 3, 4)),
        ('{"bbox_2d": [1.5, 2, 3.25, 4]}', BoundingBox(1.5, 2, 3.25, 4)),
        ("[1, 2, 3, 4] or rather [ 5 ,6, 7,8 ]", BoundingBox(5, 6, 7, 8)),
        ("[-1, 0, 3, 4]", BoundingBox(-1, 0, 3, 4)),
        ("[1, 2, 3]", None),
        ("1, 2, 3, 4", None),
        ("[1, 2, 3, 4, 5]", None),
        ("[1e9, 2, 3, 4]", None),
        ("[nan, 0, 1, 1]", None),
        (f"[{'9' * 400}, 0, 1, 1]", None),
        ("[١, ٢, ٣, ٤]", None),
    ],
)
def test_a_box_is_read_where_one_is_written(text: str, box: BoundingBox | None) -> None:
    assert last_box(text) == box


@pytest.mark.parametrize(
    "piece",
    ["[", "(", "[1,", "[1,2,", "(1,2),(", "[1 ", "1" * 50 + "[", "</think>[", "[1,2,3,", "[" + " " * 50],
)
def test_hostile_text_is_read_in_one_pass(piece: str) -> None:
    assert reward_of(piece * (400_000 // len(piece))) == Reward(0.0, 0.0, 0.0)


@given(st.text())
def test_a_reward_is_finite_and_within_its_weights_whatever_the_text(text: str) -> None:
    for response in (text, answered(text), f"[{text}]"):
        assert 0.0 <= reward_of(response).total <= 2.5


@given(boxes(), boxes())
def test_overlap_is_symmetric_and_one_for_a_box_with_itself(one: BoundingBox, other: BoundingBox) -> None:
    assert intersection_over_union(one, other) == intersection_over_union(other, one)
    assert intersection_over_union(one, one) == (1.0 if one.area else 0.0)


@given(boxes(), boxes())
def test_overlap_is_the_share_of_points_in_both(one: BoundingBox, other: BoundingBox) -> None:
    """Counted on a grid so coarse that every box is a union of its squares."""

    def squares(box: BoundingBox) -> set[tuple[int, int]]:
        columns = range(int(box.left) // 100, int(box.right) // 100)
        return {
            (column, row) for column in columns for row in range(int(box.top) // 100, int(box.bottom) // 100)
        }

    def coarse(box: BoundingBox) -> BoundingBox:
        return BoundingBox(*(int(side) // 100 * 100 for side in (box.left, box.top, box.right, box.bottom)))

    both, either = squares(one) & squares(other), squares(one) | squares(other)
    expected = len(both) / len(either) if either else 0.0
    assert intersection_over_union(coarse(one), coarse(other)) == pytest.approx(expected)


@given(boxes(), st.integers(1, 50))
def test_the_reward_falls_continuously_as_the_box_moves_away(gold: BoundingBox, step: int) -> None:
    width = gold.right - gold.left
    if not gold.area or step >= width:
        return
    moved = BoundingBox(gold.left + step, gold.top, gold.right + step, gold.bottom)
    assert intersection_over_union(moved, gold) == pytest.approx((width - step) / (width + step))


@given(boxes(), st.floats(0.1, 100))
def test_overlap_does_not_depend_on_the_unit(box: BoundingBox, factor: float) -> None:
    gold = BoundingBox(100, 100, 400, 300)

    def scaled(one: BoundingBox) -> BoundingBox:
        return BoundingBox(one.left * factor, one.top * factor, one.right * factor, one.bottom * factor)

    assert intersection_over_union(scaled(box), scaled(gold)) == pytest.approx(
        intersection_over_union(box, gold), abs=1e-9
    )


@pytest.mark.parametrize("gold", ["", "48", "[1, 2, 1, 4]", "[4, 3, 2, 1]"])
def test_a_gold_answer_without_a_boxs_area_is_refused_by_name(gold: str) -> None:
    with pytest.raises(ValueError, match=rf"question 'q': gold answer {re.escape(repr(gold))} is no box"):
        reward_of("", gold)


@pytest.mark.parametrize("field", ["iou_weight", "centre_weight", "format_weight"])
@pytest.mark.parametrize("weight", [math.nan, math.inf, -0.5])
def test_a_weight_that_would_poison_every_group_is_refused(field: str, weight: float) -> None:
    with pytest.raises(ValueError, match=f"reward grounding: {field} = "):
        build_reward({**reward_config("os_atlas"), field: weight})


def test_the_easyr1_file_gives_what_the_embedded_engines_reward_gives() -> None:
    config = reward_config("os_atlas")
    texts = [answered("[100, 100, 200, 150]"), "[100, 100, 200, 150]", ""]
    rewards = build_reward(config)([Question("q", "", GOLD)] * 3, texts)
    inputs = [{"response": text, "response_length": 9, "ground_truth": GOLD} for text in texts]
    assert reward_file().compute_score(inputs, **config) == [
        {"overall": reward.total, "format": reward.format, "accuracy": reward.accuracy} for reward in rewards
    ]
