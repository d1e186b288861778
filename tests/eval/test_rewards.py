"""The paper's reward: accuracy plus weighted format, on untrusted responses."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.rewards import REWARDS, build_reward
from eval.rewards.boxed_accuracy_format import BoxedAccuracyFormat, is_think_then_box
from fastrl.rewards import Reward
from fastrl.rollouts import Question

EASYR1_FORMAT = re.compile(r"<think>.*</think>.*\\boxed\{.*\}.*", re.DOTALL)
PIECES = st.lists(st.sampled_from(["<think>", "</think>", "\\boxed{", "}", "73", " ", "\n", "x"]), max_size=8)

REWARD = BoxedAccuracyFormat(format_weight=0.5)


def question(answer: str = "73") -> Question:
    return Question(id="q", prompt="Q: What?\nA:", answer=answer)


@pytest.mark.parametrize(
    ("response", "accuracy", "form"),
    [
        ("<think>1+72=73</think> \\boxed{73}", 1.0, 1.0),
        ("<think>1+72=73</think> The answer is \\boxed{073}.", 1.0, 1.0),
        ("<think>1+72=74</think> \\boxed{74}", 0.0, 1.0),
        ("Answer: \\boxed{73}", 1.0, 0.0),
        ("Answer: 73", 0.0, 0.0),
        ("<think>\\boxed{73}</think>", 1.0, 0.0),
        ("<think>\\boxed{73}</think> \\boxed{74}", 0.0, 1.0),
        ("</think> \\boxed{73} <think>", 1.0, 0.0),
        ("", 0.0, 0.0),
    ],
)
def test_total_is_accuracy_plus_half_of_format(response: str, accuracy: float, form: float) -> None:
    assert REWARD([question()], [response]) == [Reward(accuracy + 0.5 * form, accuracy, form)]


@given(PIECES)
def test_the_format_is_what_easyr1_accepts(pieces: list[str]) -> None:
    response = "".join(pieces)
    assert is_think_then_box(response) == (EASYR1_FORMAT.fullmatch(response.strip()) is not None)


@pytest.mark.parametrize(
    "response", ["<think>" + "</think>\\boxed{" * 30_000, "<think>" * 60_000, "<think>" + "</think>" * 60_000]
)
def test_hostile_formats_are_read_in_one_pass(response: str) -> None:
    (reward,) = REWARD([question()], [response])
    assert reward == Reward(0.0, 0.0, 0.0)


@given(st.lists(st.tuples(st.integers(-20, 20), st.integers(-20, 20)), max_size=8))
def test_each_response_is_rewarded_for_its_own_question_in_order(pairs: list[tuple[int, int]]) -> None:
    questions = [question(str(gold)) for gold, _ in pairs]
    rewards = REWARD(questions, [f"\\boxed{{{answer}}}" for _, answer in pairs])
    assert [reward.accuracy for reward in rewards] == [float(gold == answer) for gold, answer in pairs]


@given(st.text(), st.floats(0, 10))
def test_a_reward_is_finite_whatever_the_response(response: str, weight: float) -> None:
    (reward,) = BoxedAccuracyFormat(weight)([question()], [response])
    assert math.isfinite(reward.total)
    assert reward.accuracy in (0.0, 1.0) and reward.format in (0.0, 1.0)


def test_a_gold_answer_that_is_no_number_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"'q'.*'\\\\pi'"):
        REWARD([question("\\pi")], ["\\boxed{3}"])


def test_questions_and_responses_must_pair_up() -> None:
    with pytest.raises(ValueError, match="2 responses cannot answer 1 questions"):
        REWARD([question()], ["", ""])


@pytest.mark.parametrize("weight", [math.nan, math.inf, -0.5])
def test_a_weight_that_would_poison_every_group_is_refused(weight: float) -> None:
    with pytest.raises(ValueError, match="format_weight"):
        BoxedAccuracyFormat(weight)


def test_a_reward_is_built_from_its_config() -> None:
    config = {"name": "boxed_accuracy_format", "format_weight": 0.25}
    assert build_reward(config) == BoxedAccuracyFormat(0.25)
    assert config == {"name": "boxed_accuracy_format", "format_weight": 0.25}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"name": "boxed", "format_weight": 0.5}, "unknown reward 'boxed'; known: .*boxed_accuracy_format"),
        ({"format_weight": 0.5}, "unknown reward None"),
        ({"name": "boxed_accuracy_format"}, "format_weight"),
        ({"name": "boxed_accuracy_format", "format_weight": 0.5, "weight": 1}, "weight"),
    ],
)
def test_a_wrong_reward_config_is_refused(config: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build_reward(config)


def test_every_registered_reward_has_a_name_of_its_own() -> None:
    assert len(set(REWARDS.values())) == len(REWARDS)
