"""The laptop data set: right answers, splits that share no exercise, a teacher that errs as often as told."""

from __future__ import annotations

import operator
import random
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.datasets import DATASETS, dataset_digest, load_questions
from eval.datasets.laptop_geometry.families import FAMILIES
from eval.datasets.laptop_geometry.out_of_domain_families import OUT_OF_DOMAIN_FAMILIES
from eval.datasets.laptop_geometry.problem import Problem, Solution, prompt
from eval.datasets.laptop_geometry.splits import IN_DOMAIN_SPLITS, SPLITS, split_problems, warmup_pools
from eval.datasets.laptop_geometry.teacher import CONCLUSIONS, TeacherShares, teacher_response
from eval.datasets.settings import LaptopGeometryShares, LaptopGeometrySizes, LaptopGeometrySplits
from eval.extraction.boxed import boxed_integer
from eval.rewards.boxed_accuracy_format import is_think_then_box
from fastrl.rollouts import Question

CONFIG_FILE = Path(__file__).parents[2] / "experiments/conf/dataset/laptop_geometry.yaml"
ALL_FAMILIES = FAMILIES | OUT_OF_DOMAIN_FAMILIES
PROBLEMS = [problem for problems in ALL_FAMILIES.values() for problem in problems()]
IN_DOMAIN_PROBLEMS = [problem for problems in FAMILIES.values() for problem in problems()]

Recompute = Callable[[list[int]], int]

# The answer of each family from the numbers in the text alone, in the order in which they are given.
ANSWERS: dict[str, Recompute] = {
    "triangle": lambda n: 180 - sum(n),
    "supplementary": lambda n: 180 - n[0],
    "complementary": lambda n: 90 - n[0],
    "rectangle_perimeter": lambda n: n[0] + n[1] + n[0] + n[1],
    "rectangle_area": lambda n: n[0] * n[1],
    "isosceles_base": lambda n: (180 - n[0]) // 2,
    "square_perimeter": lambda n: n[0] * 4,
    "exterior_angle": lambda n: 180 - (180 - sum(n)),
    "isosceles_apex": lambda n: 180 - n[0] - n[0],
    "isosceles_exterior": lambda n: 180 - (180 - n[0]) // 2,
    "supplement_of_complement": lambda n: 180 - (90 - n[0]),
    "longer_rectangle_perimeter": lambda n: 2 * n[0] + 2 * (n[0] + n[1]),
    "longer_rectangle_area": lambda n: n[0] * (n[0] + n[1]),
}
OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.floordiv}


def config(**changes: Any) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(CONFIG_FILE.read_text())
    loaded["splits"].update(changes)
    return loaded


def splits(**changes: Any) -> LaptopGeometrySplits:
    return LaptopGeometrySplits.from_mapping(config(**changes)["splits"])


def sizes(**changes: int) -> dict[str, int]:
    original: dict[str, int] = config()["splits"]["sizes"]
    return original | changes


def numbers(text: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", text)]


def equation_holds(equation: str) -> bool:
    match = re.fullmatch(r"(\d+)([+*/-])(\d+)=(\d+)", equation)
    assert match is not None, equation
    left, sign, right, result = match.groups()
    exact = sign != "/" or int(left) % int(right) == 0
    return exact and OPERATIONS[sign](int(left), int(right)) == int(result)


@given(st.sampled_from(PROBLEMS))
def test_the_answer_follows_from_the_numbers_in_the_text(problem: Problem) -> None:
    given_numbers = numbers(problem.text)
    assert problem.answer == ANSWERS[problem.family](given_numbers)
    assert problem.answer > 0
    assert problem.numbers == tuple(sorted(given_numbers))


def test_every_family_is_checked_and_names_its_own_problems() -> None:
    assert set(ANSWERS) == set(ALL_FAMILIES)
    assert not set(FAMILIES) & set(OUT_OF_DOMAIN_FAMILIES)
    for family, problems in ALL_FAMILIES.items():
        assert {problem.family for problem in problems()} == {family}


@pytest.mark.parametrize("which", ["solution", "mistake"])
def test_reasoning_is_sound_arithmetic_that_ends_with_the_result(which: str) -> None:
    for problem in PROBLEMS:
        solution: Solution = getattr(problem, which)
        assert all(map(equation_holds, solution.equations)), problem
        assert solution.equations[-1].endswith(f"={solution.result}"), problem


def test_a_mistake_is_never_right() -> None:
    assert all(problem.mistake.result != problem.answer for problem in PROBLEMS)


def test_texts_are_unique() -> None:
    assert len({problem.text for problem in PROBLEMS}) == len(PROBLEMS)


def test_out_of_domain_problems_combine_known_equations() -> None:
    known = {equation for problem in IN_DOMAIN_PROBLEMS for equation in problem.solution.equations}
    for problems in OUT_OF_DOMAIN_FAMILIES.values():
        for problem in problems():
            assert set(problem.solution.equations) <= known, problem
            assert len(problem.solution.equations) >= 2


@pytest.mark.parametrize("seed", range(5))
def test_no_exercise_is_in_two_splits(seed: int) -> None:
    drawn = {name: split_problems(splits(seed=seed), name) for name in SPLITS}
    for first, second in combinations(SPLITS, 2):
        shared = {p.exercise for p in drawn[first]} & {p.exercise for p in drawn[second]}
        assert not shared, (first, second)
    for name in IN_DOMAIN_SPLITS:
        assert {p.family for p in drawn[name]} == set(FAMILIES)
    assert {p.family for p in drawn["out_of_domain"]} == set(OUT_OF_DOMAIN_FAMILIES)


@pytest.mark.parametrize("seed", range(5))
def test_the_warmup_sees_no_out_of_domain_exercise_that_is_evaluated(seed: int) -> None:
    in_domain, out_of_domain = warmup_pools(splits(seed=seed))
    evaluated = {problem.exercise for problem in split_problems(splits(seed=seed), "out_of_domain")}
    seen = {problem.exercise for problems in out_of_domain.values() for problem in problems}
    assert seen and not seen & evaluated
    assert set(in_domain) == set(FAMILIES) and set(out_of_domain) == set(OUT_OF_DOMAIN_FAMILIES)


@pytest.mark.parametrize("split", SPLITS)
def test_a_split_has_the_size_that_was_asked_for_and_no_question_twice(split: str) -> None:
    questions = load_questions(config(), split)
    assert len(questions) == config()["splits"]["sizes"][split]
    assert len({question.id for question in questions}) == len({question.prompt for question in questions})
    assert len({question.id for question in questions}) == len(questions)


def test_a_question_carries_prompt_gold_answer_and_family() -> None:
    problems = {prompt(problem): problem for problem in PROBLEMS}
    for split in SPLITS:
        for question in load_questions(config(), split):
            problem = problems[question.prompt]
            assert (question.answer, question.family) == (str(problem.answer), problem.family)
            assert question.id.startswith(f"laptop_geometry/{problem.family}/")


def test_the_same_seed_gives_the_same_questions_in_another_process() -> None:
    program = (
        "import sys, yaml; from eval.datasets import dataset_digest, load_questions;"
        "config = yaml.safe_load(open(sys.argv[1]));"
        f"print(*[dataset_digest(load_questions(config, split)) for split in {SPLITS}])"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program, str(CONFIG_FILE)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    ).stdout.split()
    assert printed == [dataset_digest(load_questions(config(), split)) for split in SPLITS]


def test_another_seed_gives_other_questions_but_the_same_id_for_the_same_text() -> None:
    first = {q.prompt: q.id for q in load_questions(config(), "train")}
    second = {q.prompt: q.id for q in load_questions(config(seed=1), "train")}
    shared = set(first) & set(second)
    assert set(first) != set(second) and shared
    assert all(first[text] == second[text] for text in shared)


def test_the_digest_depends_on_every_field_and_on_the_order() -> None:
    base = [Question("a", "p", "1", "f"), Question("b", "q", "2", "g")]
    others = [
        [replace(base[0], id="c"), base[1]],
        [replace(base[0], prompt="r"), base[1]],
        [replace(base[0], answer="3"), base[1]],
        [replace(base[0], family="h"), base[1]],
        base[::-1],
        base[:1],
    ]
    assert len({dataset_digest(questions) for questions in [base, *others]}) == 1 + len(others)
    assert dataset_digest(base) == dataset_digest(list(base))


def test_an_empty_split_is_refused() -> None:
    with pytest.raises(ValueError, match="'laptop_geometry': split 'train' is empty"):
        load_questions(config(sizes=sizes(train=0)), "train")


def test_a_split_larger_than_the_pool_is_refused_with_what_there_is() -> None:
    with pytest.raises(ValueError, match=r"split 'train' .* has \d+ problems .* splits.sizes.train = 99999"):
        load_questions(config(sizes=sizes(train=99_999)), "train")


def test_unknown_splits_and_sources_are_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="no split 'test'; it has train, selection, validation"):
        load_questions(config(), "test")
    with pytest.raises(ValueError, match=f"unknown data set source 'laptop'; known: .*{min(DATASETS)}"):
        load_questions(config() | {"source": "laptop"}, "train")


@pytest.mark.parametrize(
    "shares",
    [
        {"selection": 0.0, "validation": 0.5, "out_of_domain": 0.5},
        {"selection": 0.2, "validation": 1.0, "out_of_domain": 0.5},
        {"selection": 0.5, "validation": 0.5, "out_of_domain": 0.5},
        {"selection": float("nan"), "validation": 0.5, "out_of_domain": 0.5},
    ],
)
def test_shares_that_leave_a_split_without_exercises_are_refused(shares: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"splits\.number_shares\.(selection|validation)"):
        LaptopGeometryShares(**shares)


@settings(max_examples=10)
@given(
    seed=st.integers(0, 1000),
    selection=st.floats(0.05, 0.45),
    validation=st.floats(0.05, 0.45),
    wanted=st.integers(1, 60),
)
def test_splits_stay_apart_whatever_the_shares(
    seed: int, selection: float, validation: float, wanted: int
) -> None:
    asked = LaptopGeometrySplits(
        seed=seed,
        sizes=LaptopGeometrySizes(wanted, wanted, wanted, wanted),
        number_shares=LaptopGeometryShares(selection, validation, 0.5),
    )
    exercises = [{p.exercise for p in split_problems(asked, name)} for name in IN_DOMAIN_SPLITS]
    assert sum(map(len, exercises)) == len(set().union(*exercises))


SURE = TeacherShares(wrong=0.0, direct=0.0, short=0.0, without_think=0.0, without_box=0.0)


@given(st.sampled_from(PROBLEMS), st.integers(0, 2**32))
def test_a_sure_teacher_reasons_in_the_right_format_to_the_right_answer(problem: Problem, seed: int) -> None:
    response = teacher_response(problem, SURE, random.Random(seed))
    assert is_think_then_box(response)
    assert boxed_integer(response) == str(problem.answer)
    assert problem.solution.reason in response
    assert all(equation in response for equation in problem.solution.equations)


@given(st.sampled_from(PROBLEMS), st.integers(0, 2**32))
def test_each_share_does_what_its_name_says(problem: Problem, seed: int) -> None:
    def responded(**shares: float) -> str:
        return teacher_response(problem, replace(SURE, **shares), random.Random(seed))

    assert boxed_integer(responded(wrong=1.0)) == str(problem.mistake.result)
    assert responded(direct=1.0) == f"Answer: \\boxed{{{problem.answer}}}"
    assert responded(short=1.0).startswith(f"<think>{', '.join(problem.solution.equations)}</think> ")
    assert "think>" not in responded(without_think=1.0)
    unboxed = responded(without_box=1.0)
    assert boxed_integer(unboxed) is None
    assert unboxed.endswith(tuple(conclusion.format(problem.answer) for conclusion in CONCLUSIONS))


def test_shares_are_met_over_many_responses() -> None:
    shares = TeacherShares(wrong=0.4, direct=0.25, short=0.3, without_think=0.5, without_box=0.12)
    rng = random.Random(0)
    problems = [rng.choice(IN_DOMAIN_PROBLEMS) for _ in range(20_000)]
    responses = [teacher_response(problem, shares, rng) for problem in problems]
    right = sum(boxed_integer(r) == str(p.answer) for r, p in zip(responses, problems, strict=True))
    assert right / 20_000 == pytest.approx(0.6 * 0.88, abs=0.02)
    assert sum(map(is_think_then_box, responses)) / 20_000 == pytest.approx(0.75 * 0.5 * 0.88, abs=0.02)
    assert sum(r.startswith("Answer: ") for r in responses) / 20_000 == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize("name", ["wrong", "direct", "short", "without_think", "without_box"])
@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_a_share_outside_its_range_is_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"teacher share {name} = "):
        replace(SURE, **{name: value})


def test_styles_that_exceed_the_whole_are_refused() -> None:
    with pytest.raises(ValueError, match="sum to more than 1"):
        replace(SURE, direct=0.6, short=0.6)
