"""Rewards for open answers: a reward and its benchmark never disagree on the same text."""

from __future__ import annotations

import importlib.util
import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.grading.open_answers import shared_grader
from eval.protocols import load_protocol
from eval.protocols.base import BenchmarkQuestion
from eval.rewards import build_reward
from eval.rewards.response_formats import RESPONSE_FORMATS, is_think_then_answer
from fastrl.rollouts import Question

ROOT = Path(__file__).parents[2]
BENCHMARKS = ("geometry3k", "geoqa8k_r1v", "math")
RECORDS: dict[str, Callable[[str], dict[str, Any]]] = {
    "geometry3k": lambda gold: {"problem": "<image>Find x.", "answer": gold, "images": ["a.png"]},
    "geoqa8k_r1v": lambda gold: {"question": "Angle?", "ground_truth": gold, "image_path": "a.png"},
    "math": lambda gold: {"problem": "What?", "answer": gold, "subject": "Algebra", "level": 1},
}
GOLDS = ("48", "145°", "2\\sqrt{3}", "\\frac{1}{2}", "4cm", "(1,2)", "B")
TEXTS = (
    "",
    "48",
    "<think>48</think> \\boxed{48}",
    "<think>so</think> The answer is \\boxed{48.0}.",
    "<think>\\boxed{48}</think>",
    "<think>\\boxed{3}</think> \\boxed{48}",
    "<think>x</think><answer>145</answer>",
    "<think>x</think> <answer> \\boxed{145^\\circ} </answer>",
    "The answer is 145 degrees.",
    "\\boxed{2\\sqrt3}",
    "\\boxed{\\sqrt{12}}",
    "\\boxed{0.5}",
    "\\boxed{\\dfrac12}",
    "\\boxed{4 \\text{ cm}}",
    "\\boxed{(1, 2)}",
    "\\boxed{B}",
    "Answer: B",
    "\\boxed{48",
    "\\boxed{}",
    "<answer></answer>",
    "\\boxed{__import__('os').getpid()}",
    "\x00 \u202e \\boxed{48}",
)
PIECES = st.lists(
    st.sampled_from(
        [
            "<think>",
            "</think>",
            "<answer>",
            "</answer>",
            "\\boxed{",
            "}",
            "\\frac{1}{2}",
            "0.5",
            "The answer is ",
            "48",
            "145°",
            "B",
            " ",
            "\n",
            ".",
        ]
    ),
    max_size=10,
)


def reward_config(name: str) -> dict[str, Any]:
    path = ROOT / f"experiments/conf/dataset/{name}.yaml"
    config: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))["reward"]
    return config


def benchmark_verdicts(name: str, rule: str, pairs: list[tuple[str, str]]) -> list[bool | None]:
    """What the benchmark says, by way of its official records."""
    protocol = load_protocol(name)
    questions = protocol.questions([RECORDS[name](gold) for gold, _ in pairs])
    extractions = [protocol.extract(q, text) for q, (_, text) in zip(questions, pairs, strict=True)]
    return protocol.grade(questions, extractions, rule, shared_grader().equal)


def reward_accuracies(config: dict[str, Any], pairs: list[tuple[str, str]]) -> list[float]:
    questions = [Question(f"q{n}", "a prompt", gold) for n, (gold, _) in enumerate(pairs)]
    return [reward.accuracy for reward in build_reward(config)(questions, [text for _, text in pairs])]


def reward_file() -> ModuleType:
    """The reward file, loaded by its path as EasyR1 does."""
    path = ROOT / "eval/rewards/easyr1_reward.py"
    spec = importlib.util.spec_from_file_location("custom_reward_fn", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", BENCHMARKS)
def test_reward_and_benchmark_agree_on_hand_made_texts(name: str) -> None:
    pairs = [(gold, text) for gold in GOLDS for text in TEXTS]
    for rule in load_protocol(name).rules:
        verdicts = benchmark_verdicts(name, rule, pairs)
        assert {True, False} <= set(verdicts)
        assert reward_accuracies({**reward_config(name), "rule": rule}, pairs) == [
            float(bool(verdict)) for verdict in verdicts
        ]


@pytest.mark.parametrize("name", BENCHMARKS)
@settings(max_examples=8)
@given(gold=st.sampled_from(GOLDS), pieces=PIECES, text=st.text(max_size=20))
def test_reward_and_benchmark_agree_on_any_text(name: str, gold: str, pieces: list[str], text: str) -> None:
    pairs = [(gold, "".join(pieces)), (gold, text), (gold, f"\\boxed{{{text}}}")]
    config = reward_config(name)
    verdicts = benchmark_verdicts(name, config["rule"], pairs)
    assert reward_accuracies(config, pairs) == [float(bool(verdict)) for verdict in verdicts]


@pytest.mark.parametrize("name", BENCHMARKS)
def test_the_configured_rule_compares_the_stated_answer(name: str) -> None:
    config = reward_config(name)
    assert (config["benchmark"], config["rule"]) == (name, load_protocol(name).rules[-1])
    pairs = [("48", "<think>48</think> It may be that."), ("48", "<think>7</think> \\boxed{48}")]
    assert reward_accuracies(config, pairs) == [0.0, 1.0]
    assert config["format_weight"] == 0.5


@pytest.mark.parametrize("name", BENCHMARKS)
def test_the_easyr1_file_gives_what_the_embedded_engines_reward_gives(name: str) -> None:
    config = reward_config(name)
    pairs = [(gold, text) for gold in GOLDS[:3] for text in TEXTS]
    questions = [Question(f"q{n}", "", gold) for n, (gold, _) in enumerate(pairs)]
    rewards = build_reward(config)(questions, [text for _, text in pairs])
    module = reward_file()
    assert module.REWARD_TYPE == "batch"
    inputs = [{"response": text, "response_length": 1, "ground_truth": gold} for gold, text in pairs]
    assert module.compute_score(inputs, **config) == [
        {"overall": reward.total, "format": reward.format, "accuracy": reward.accuracy} for reward in rewards
    ]
    assert module.compute_score([], **config) == []


def test_total_is_accuracy_plus_half_of_format() -> None:
    reward = build_reward(reward_config("geometry3k"))
    texts = ["<think>a</think> \\boxed{48}", "\\boxed{48}", "<think>a</think> \\boxed{47}", "47"]
    totals = [one.total for one in reward([Question("q", "", "48")] * 4, texts)]
    assert totals == [1.5, 1.0, 0.5, 0.0]


def test_a_benchmarks_own_question_is_graded_as_it_is() -> None:
    question = BenchmarkQuestion("q", "", "48", images=("a.png",), labels={}, details={"any": 1})
    (reward,) = build_reward(reward_config("math"))([question], ["\\boxed{48}"])
    assert reward.accuracy == 1.0


R1V_FORMAT = re.compile(r"<think>.*?</think>\s*<answer>.*?</answer>", re.DOTALL)


@given(PIECES)
def test_think_then_answer_is_what_easyr1s_r1v_format_accepts(pieces: list[str]) -> None:
    response = "".join(pieces)
    assert is_think_then_answer(response) == (R1V_FORMAT.fullmatch(response.strip()) is not None)


@pytest.mark.parametrize("name", sorted(RESPONSE_FORMATS))
@pytest.mark.parametrize(
    "response",
    ["<think>" + "</think> <answer" * 60_000, "<think>" + "</think>" + " " * 500_000, "<answer>" * 60_000],
)
def test_hostile_formats_are_read_in_one_pass(name: str, response: str) -> None:
    assert not RESPONSE_FORMATS[name](response)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rule": "lenient"}, "geometry3k has no rule 'lenient'; it has current"),
        ({"benchmark": "chess"}, "unknown benchmark 'chess'"),
        (
            {"response_format": "haiku"},
            "unknown response_format 'haiku'; known: think_then_answer, think_then_box",
        ),
        ({"format_weight": math.nan}, "format_weight = nan"),
        ({"format_weight": -1.0}, "format_weight = -1.0"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        build_reward({**reward_config("geometry3k"), **change})


def test_questions_and_responses_must_pair_up() -> None:
    for name in ("geometry3k", "os_atlas"):
        with pytest.raises(ValueError, match="2 responses cannot answer 1 questions"):
            build_reward(reward_config(name))([Question("q", "", "[0, 0, 1, 1]")], ["", ""])


def test_an_answer_that_is_no_text_is_refused_by_its_number() -> None:
    inputs = [{"response": "", "response_length": 0, "ground_truth": answer} for answer in ("48", 48)]
    with pytest.raises(ValueError, match="reward input 1: ground_truth is 48, not a text"):
        reward_file().compute_score(inputs, **reward_config("math"))


def test_reward_files_load_without_configuration_evaluation_and_tracking_libraries() -> None:
    code = (
        "import eval.rewards.easyr1_reward, sys\n"
        "import eval.rewards.benchmark_accuracy_format, eval.rewards.grounding\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    heavy = {
        "hydra",
        "omegaconf",
        "lm_eval",
        "mlflow",
        "pandas",
        "torch",
        "transformers",
        "pydantic",
        "sympy",
    }
    assert not heavy & set(done.stdout.split())
