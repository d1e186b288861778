"""The laptop's figures: legible, the same bytes everywhere, with all that is given in the image alone."""

from __future__ import annotations

import hashlib
import io
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from PIL import Image

from eval.datasets import dataset_digest, load_questions, parquet_folder
from eval.datasets.laptop_figures.drawing import INK, PENCIL, draw
from eval.datasets.laptop_figures.figure import HEIGHT, WIDTH, Figure
from eval.datasets.laptop_figures.layouts import LAYOUTS
from eval.datasets.laptop_figures.out_of_domain_layouts import OUT_OF_DOMAIN_LAYOUTS
from eval.datasets.laptop_figures.png import grey_png
from eval.datasets.laptop_figures.problem import FIGURES, SHAPES, PicturedProblem
from eval.datasets.laptop_geometry.splits import IN_DOMAIN_SPLITS, SPLITS, split_problems
from eval.datasets.settings import LaptopGeometrySplits
from eval.preparation.parquet_file import QuestionIds, write_questions
from eval.preparation.prepare import read_card

ROOT = Path(__file__).parents[2]
FAMILIES = {**FIGURES.in_domain, **FIGURES.out_of_domain}
ALL_SPLITS = (*SPLITS, "shuffled")


@cache
def problems(family: str) -> tuple[PicturedProblem, ...]:
    """One problem for each figure of a family."""
    figures: dict[Any, PicturedProblem] = {}
    for problem in FAMILIES[family]():
        assert isinstance(problem, PicturedProblem)
        figures.setdefault((problem.given, problem.drawing), problem)
    return tuple(figures.values())


def config(root: Path, **sizes: int) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(
        (ROOT / "experiments/conf/dataset/laptop_figures.yaml").read_text()
    )
    loaded["splits"]["sizes"] |= sizes
    return loaded | {"root": str(root)}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The config of the whole set, drawn."""
    made = config(tmp_path_factory.mktemp("data"))
    load_questions(made, "train")
    return made


def ink(figure: Figure) -> np.ndarray:
    """(HEIGHT, WIDTH) bool, where lines are, as wide as they are ever drawn."""
    return np.asarray(draw(replace(figure, labels=()), INK)) != INK.background


@pytest.mark.parametrize("family", FAMILIES)
def test_numbers_touch_no_line_no_other_number_and_no_edge(family: str) -> None:
    for problem in problems(family):
        figure = problem.figure()
        lines = ink(figure)
        for label in figure.labels:
            left, top, right, bottom = label.box
            assert 0 <= left < right <= WIDTH and 0 <= top < bottom <= HEIGHT, problem
            around = lines[max(top - 1, 0) : bottom + 1, max(left - 1, 0) : right + 1]
            assert not around.any(), (problem.given, problem.drawing, label)
        for one, other in combinations(figure.labels, 2):
            apart = one.box[2] + 2 < other.box[0] or other.box[2] + 2 < one.box[0]
            above = one.box[3] < other.box[1] or other.box[3] < one.box[1]
            assert apart or above, problem


@pytest.mark.parametrize("family", FAMILIES)
def test_lines_stay_in_the_picture(family: str) -> None:
    for problem in problems(family):
        points = [point for stroke in problem.figure().strokes for point in stroke]
        # A line of two pixels covers the next pixel too.
        assert all(0 <= x < WIDTH - 1 and 0 <= y < HEIGHT - 1 for x, y in points), problem


@pytest.mark.parametrize("family", FAMILIES)
def test_the_given_numbers_stand_in_the_figure_and_nowhere_else(family: str) -> None:
    for problem in problems(family):
        labels = [label.text for label in problem.figure().labels]
        written = [int(digits) for label in labels for digits in re.findall(r"\d+", label)]
        assert set(written) == set(problem.given)
        assert not re.search(r"\d", problem.text)
        assert SHAPES[family].split(",")[0] not in problem.text


def test_texts_are_shared_by_families_whose_answers_differ() -> None:
    asked: dict[str, set[str]] = {}
    for family, all_problems in FAMILIES.items():
        for text in {problem.text for problem in all_problems()}:
            asked.setdefault(text, set()).add(family)
    assert {"supplementary", "complementary"} in asked.values()
    assert any({"rectangle_perimeter", "square_perimeter"} <= families for families in asked.values())


def test_the_two_domains_share_no_family_and_no_style() -> None:
    assert not LAYOUTS.keys() & OUT_OF_DOMAIN_LAYOUTS.keys()
    assert set(FAMILIES) == {*LAYOUTS, *OUT_OF_DOMAIN_LAYOUTS}
    for family in FAMILIES:
        style = INK if family in LAYOUTS else PENCIL
        corner = np.asarray(problems(family)[0].picture())[0, WIDTH - 1]
        assert corner == style.background


def test_the_bytes_of_figures_are_the_same_on_every_machine() -> None:
    digest = hashlib.sha256()
    for family in FAMILIES:
        for problem in problems(family)[::29]:
            digest.update(problem.png())
    assert digest.hexdigest() == DIGEST


DIGEST = "ac307eb27eefccaa51035214fd55874a8d278790a9a1a05f02f92ce23697c9b4"
"""Of the machine they were first drawn on."""


@pytest.mark.parametrize("family", FAMILIES)
def test_a_file_decodes_to_the_pixels_of_its_figure(family: str) -> None:
    problem = problems(family)[-1]
    with Image.open(io.BytesIO(problem.png())) as image:
        assert (image.format, image.size) == ("PNG", (WIDTH, HEIGHT))
        assert image.tobytes() == problem.picture().tobytes()


def test_a_picture_larger_than_a_block_of_the_stream_is_whole() -> None:
    pixels = bytes(index % 251 for index in range(400 * 300))
    with Image.open(io.BytesIO(grey_png(400, 300, pixels))) as image:
        assert image.tobytes() == pixels
    with pytest.raises(ValueError, match="119999 pixels do not make a picture of 400 x 300"):
        grey_png(400, 300, pixels[:-1])


@pytest.mark.parametrize("seed", range(3))
def test_no_exercise_is_in_two_splits_and_the_splits_are_those_of_the_texts(seed: int) -> None:
    splits = config(Path())["splits"] | {"seed": seed}
    settings = LaptopGeometrySplits.from_mapping(splits)
    figures = {name: {p.exercise for p in split_problems(settings, name, FIGURES)} for name in SPLITS}
    texts = {name: {p.exercise for p in split_problems(settings, name)} for name in SPLITS}
    for one, other in combinations(SPLITS, 2):
        assert not figures[one] & figures[other]
        assert not figures[one] & texts[other]
    for name in IN_DOMAIN_SPLITS:
        assert {family for family, _ in figures[name]} == set(FIGURES.in_domain)


def test_the_set_has_the_schema_that_prepared_sets_with_images_have(
    drawn: dict[str, Any], tmp_path: Path
) -> None:
    write_questions(tmp_path / "as_prepared.parquet", iter(()), QuestionIds("any"), has_images=True)
    folder = parquet_folder(drawn)
    assert folder is not None
    for split in SPLITS:
        schema = pq.read_schema(folder / f"{split}.parquet")
        assert schema.equals(pq.read_schema(tmp_path / "as_prepared.parquet"), check_metadata=True)


def test_each_question_has_its_image_and_a_stable_id(drawn: dict[str, Any]) -> None:
    ids = set()
    for split in SPLITS:
        questions = load_questions(drawn, split)
        assert len(questions) == drawn["splits"]["sizes"][split]
        for question in questions:
            assert question.prompt.startswith("<image>") and question.prompt.count("<image>") == 1
            assert [image.size for image in question.images] == [(WIDTH, HEIGHT)]
        ids |= {question.id for question in questions}
    assert len(ids) == sum(drawn["splits"]["sizes"].values())


def test_drawing_again_gives_the_same_set(drawn: dict[str, Any], tmp_path: Path) -> None:
    again = drawn | {"root": str(tmp_path)}
    for split in ALL_SPLITS:
        assert dataset_digest(load_questions(again, split)) == dataset_digest(load_questions(drawn, split))
    first, second = (parquet_folder(each) for each in (drawn, again))
    assert first is not None and second is not None
    assert read_card(first) == read_card(second)


def test_other_splits_are_kept_in_another_folder(drawn: dict[str, Any]) -> None:
    smaller = config(Path(drawn["root"]), train=5)
    assert len(load_questions(smaller, "train")) == 5
    assert len(load_questions(drawn, "train")) == drawn["splits"]["sizes"]["train"]


def test_a_digest_of_the_questions_covers_the_images(drawn: dict[str, Any]) -> None:
    own, others = load_questions(drawn, "validation"), load_questions(drawn, "shuffled")
    assert [question.id for question in own] == [question.id for question in others]
    assert dataset_digest(own) != dataset_digest(others)


def test_shuffled_questions_show_an_image_of_the_same_question_with_another_answer(
    drawn: dict[str, Any],
) -> None:
    own = load_questions(drawn, "validation")
    by_image = {question.images[0].source: question for question in own}
    for question, shown in zip(own, load_questions(drawn, "shuffled"), strict=True):
        depicted = by_image[shown.images[0].source]
        assert depicted.answer != question.answer
        assert depicted.prompt == question.prompt


def test_an_unknown_split_is_named_with_those_that_there_are(drawn: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"laptop_figures has no split 'test'; it has .*train, validation"):
        load_questions(drawn, "test")


DRAW = """
import sys
from pathlib import Path
from eval.datasets import load_questions
import yaml
config = yaml.safe_load(Path(sys.argv[1]).read_text())
print(len(load_questions(config, "train")))
"""


def test_processes_that_need_the_set_at_once_draw_it_once(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(config(tmp_path / "data", train=32)))
    started = [
        subprocess.Popen([sys.executable, "-c", DRAW, str(file)], stdout=subprocess.PIPE, cwd=ROOT, text=True)
        for _ in range(3)
    ]
    assert [process.communicate(timeout=120)[0].strip() for process in started] == ["32"] * 3
    (folder,) = [path for path in (tmp_path / "data").iterdir() if path.is_dir()]
    assert sorted(_files(folder)) == sorted(
        [*(f"{split}.parquet" for split in SPLITS), "data_card.json", "data_card.md", ".lock"]
    )


def _files(folder: Path) -> Iterator[str]:
    return (path.name for path in folder.iterdir())
