"""The report's examples: held-out figures with the answers before and after training."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from synthetic_images import write_samples

from analysis.evaluation_records import Evaluation
from analysis.examples import Answer, Examples, examples
from analysis.figures.examples import FIGURE
from analysis.figures.spec import Drawing, render
from analysis.records import RunRecord
from analysis.study import Arm, Clock, Study
from eval.datasets.laptop_figures.png import grey_png
from experiments.plan import Plan, ReportSettings
from experiments.run_directory import RunDirectory

BENCHMARK = "laptop_figures"
IMAGE = grey_png(2, 2, bytes([0, 255, 255, 0]))


def samples(path: Path, answers: dict[str, tuple[str | None, bool]]) -> None:
    rows = [
        {"decoding": decoding, "question_id": name, "sample": 0, "extracted": text, "correct": right}
        for name, (text, right) in answers.items()
        for decoding in ("t1", "greedy")
    ]
    write_samples(path.parent, rows, {})


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """Two methods and three questions, two of one family, one of which changes."""
    arms = tuple(
        Arm(method, method.upper(), method, "m", "d", None, ("main",), {0: f"{method}-s0"})
        for method in ("grpo", "fastrl")
    )
    start = tmp_path / "models/policy-1.start" / BENCHMARK
    samples(start / "samples.parquet", {"a": ("1", False), "b": ("2", False), "c": (None, False)})
    questions = [
        {"question_id": name, "prompt": "<image>Find it.", "answer": "7", "family": family, "images": [IMAGE]}
        for name, family in (("a", "one"), ("b", "one"), ("c", "two"))
    ]
    pq.write_table(pa.Table.from_pylist(questions), start / "questions.parquet")
    for arm, text in zip(arms, ("7", "8"), strict=True):
        run = RunDirectory(tmp_path / "runs" / arm.runs[0])
        samples(run.samples_path(BENCHMARK), {"a": ("1", False), "b": (text, text == "7"), "c": ("7", True)})
        run.provenance_path.write_text(json.dumps({"policy": "policy-1"}))
    return _study(tmp_path, arms)


def _study(root: Path, arms: tuple[Arm, ...]) -> Study:
    report = ReportSettings((), ("examples",), BENCHMARK, (), 0.5)
    nothing = pd.DataFrame()
    return Study(
        root=root,
        plan=Plan("laptop", "A study", "grpo", "cpu", None, 0.0, (), report),
        clock=Clock("cpu_s", "CPU-s"),
        arms=arms,
        records={run: _record(run) for arm in arms for run in arm.runs.values()},
        steps=nothing,
        validations=nothing,
        evaluations=nothing,
        set_aside=(),
        unfinished=(),
    )


def _record(run: str) -> RunRecord:
    evaluations = {BENCHMARK: Evaluation({"decodings": {"greedy": {}}}, scores=None)}
    return RunRecord(run, {}, {}, steps=None, evaluations=evaluations, hardware="", commit=None, dirty=False)


def test_each_family_shows_the_middle_question_before_training(study: Study) -> None:
    found = examples(study, 5)
    assert isinstance(found, Examples)
    assert found.columns == ("before training", "GRPO", "FASTRL")
    assert [(row.question, row.gold, row.image) for row in found.rows] == [("Find it.", "7", IMAGE)] * 2
    wrong, right = (False, 0, 1), (True, 1, 1)
    assert found.rows[0].answers == (Answer("2", *wrong), Answer("7", *right), Answer("8", *wrong))
    assert found.rows[1].answers == (Answer(None, *wrong), Answer("7", *right), Answer("7", *right))


def test_the_middle_question_goes_by_samples_and_they_are_counted(study: Study) -> None:
    path = study.root / "models/policy-1.start" / BENCHMARK / "samples.parquet"
    rows = [
        {"decoding": decoding, "question_id": name, "sample": sample, "extracted": "7", "correct": right}
        for name, rights in (("a", [True, True, False]), ("b", [False, True, False]), ("c", [True] * 3))
        for decoding, answers in (("greedy", [True]), ("t1", rights))
        for sample, right in enumerate(answers)
    ]
    write_samples(path.parent, rows, {})
    found = examples(study, 5)
    assert isinstance(found, Examples)
    assert [row.answers[0] for row in found.rows] == [Answer("7", True, 2, 3), Answer("7", True, 3, 3)]


def test_without_samples_the_greedy_answers_decide() -> None:
    assert (Answer("7", True, 0, 0).rate, Answer("7", False, 0, 0).rate) == (1.0, 0.0)


def test_no_more_are_shown_than_asked_for(study: Study) -> None:
    found = examples(study, 1)
    assert isinstance(found, Examples) and len(found.rows) == 1


def test_the_figure_reads_its_records_once(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    monkeypatch.setattr("analysis.figures.examples.examples", lambda *each: made.append(1) or examples(*each))
    found = FIGURE.read(study)
    assert isinstance(found, Drawing)
    assert "one a family" in found.caption
    files = render(found, ("png", "svg"))
    assert len(made) == 1
    assert b"<image" in files["svg"]  # the question's image lies in it


def test_without_a_record_of_the_starting_policy_the_report_says_so(study: Study) -> None:
    (study.root / "models/policy-1.start" / BENCHMARK / "questions.parquet").unlink()
    assert FIGURE.read(study) == "no record of the starting policy on questions with images"


def test_a_study_without_finished_evaluations_says_so(study: Study) -> None:
    assert FIGURE.read(replace(study, records={})) == "no main method with a finished evaluation"


def test_damaged_samples_of_a_method_are_named_and_the_others_shown(study: Study) -> None:
    path = RunDirectory(study.root / "runs/fastrl-s0").samples_path(BENCHMARK)
    path.write_bytes(b"no parquet")
    found = FIGURE.read(study)
    assert isinstance(found, Drawing)
    assert "Left out: runs/fastrl-s0/eval/laptop_figures/samples.parquet: can't be read" in found.caption
    assert str(study.root) not in found.caption
    shown = examples(study, 5)
    assert isinstance(shown, Examples) and [row.answers[2] for row in shown.rows] == [None, None]
    assert all(row.answers[1] for row in shown.rows)


@pytest.mark.parametrize("name", ["samples.parquet", "questions.parquet"])
def test_damaged_records_of_the_starting_policy_are_named_from_the_results_folder_on(
    study: Study, name: str
) -> None:
    (study.root / "models/policy-1.start" / BENCHMARK / name).write_bytes(b"no parquet")
    found = FIGURE.read(study)
    assert isinstance(found, str)
    assert found.startswith(f"models/policy-1.start/{BENCHMARK}/{name}: can't be read")
    assert str(study.root) not in found


def test_a_damaged_image_is_told_in_the_same_words_each_time(study: Study) -> None:
    rewrite_questions(study, images=[b"no image"])
    assert FIGURE.read(study) == f"an image of {BENCHMARK} can't be read (UnidentifiedImageError)"


def rewrite_questions(study: Study, **changes: Any) -> None:
    path = study.root / "models/policy-1.start" / BENCHMARK / "questions.parquet"
    rows = [{**row, **changes} for row in pq.read_table(path).to_pylist()]
    pq.write_table(pa.Table.from_pylist(rows), path)


def drawn_texts(study: Study) -> list[str]:
    from matplotlib.figure import Figure

    found = FIGURE.read(study)
    assert isinstance(found, Drawing)
    figure = Figure(figsize=found.size)
    found.draw(figure)
    return [text.get_text() for text in figure.axes[0].texts]


def test_a_long_question_is_broken_into_lines_and_cut(study: Study) -> None:
    rewrite_questions(study, prompt="<image>" + "Consider the figure, and then say how long it is. " * 40)
    (question, *_) = [text for text in drawn_texts(study) if text.startswith("Consider")]
    *lines, right = question.split("\n")
    assert len(lines) == 3 and max(map(len, lines)) <= 36
    assert lines[-1].endswith("…") and right == "right: 7"


def test_a_long_answer_stays_within_its_column(study: Study) -> None:
    path = RunDirectory(study.root / "runs/fastrl-s0").samples_path(BENCHMARK)
    samples(path, dict.fromkeys("abc", ("1/2 +\n" + "9" * 500, False)))
    cut = [text for text in drawn_texts(study) if text.startswith("1/2")]
    assert len(cut) == 2 and all("\n" not in text and len(text) < 30 for text in cut)


def test_images_of_any_common_format_keep_their_proportions(study: Study) -> None:
    from matplotlib.figure import Figure
    from PIL import Image

    buffer = io.BytesIO()
    Image.new("RGB", (30, 10), "red").save(buffer, format="JPEG")
    rewrite_questions(study, images=[buffer.getvalue()])
    found = FIGURE.read(study)
    assert isinstance(found, Drawing)
    figure = Figure(figsize=found.size)
    found.draw(figure)
    left, right, bottom, top = figure.axes[0].images[0].get_extent()
    x, y = figure.axes[0].get_xlim(), figure.axes[0].get_ylim()
    inches = (
        (right - left) / (x[1] - x[0]) * found.size[0],
        (top - bottom) / (y[1] - y[0]) * found.size[1],
    )
    assert inches[0] / inches[1] == pytest.approx(3)
    assert 0 <= left < right <= 0.13, "within its own column"


def test_questions_without_images_are_drawn_without(study: Study) -> None:
    rewrite_questions(study, images=[])
    found = FIGURE.read(study)
    assert isinstance(found, Drawing)
    assert b"<image" not in render(found, ("svg",))["svg"]


def test_an_image_that_is_none_is_told(study: Study) -> None:
    rewrite_questions(study, images=[IMAGE[:20]])
    found = FIGURE.read(study)
    assert isinstance(found, str) and found.startswith("an image of laptop_figures can't be read")


def test_a_question_that_is_there_twice_is_named(study: Study) -> None:
    path = study.root / "models/policy-1.start" / BENCHMARK / "questions.parquet"
    table = pq.read_table(path)
    pq.write_table(pa.concat_tables([table, table.slice(1, 1)]), path)
    assert (
        examples(study, 5) == f"models/policy-1.start/{BENCHMARK}/questions.parquet, row 2: b is there twice"
    )


def test_doubled_answers_of_the_starting_policy_are_named(study: Study) -> None:
    path = study.root / "models/policy-1.start" / BENCHMARK / "samples.parquet"
    table = pq.read_table(path)
    pq.write_table(pa.concat_tables([table, table.slice(1, 1)]), path)
    found = examples(study, 5)
    assert found == (
        f"models/policy-1.start/{BENCHMARK}/samples.parquet, row 7: sample 0 of a, greedy, is there twice"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [(None, "can't be read"), ("{", "is not valid JSON"), ("[]", "holds list, not an object")],
)
def test_results_of_the_starting_policy_that_are_none_are_named(
    study: Study, text: str | None, reason: str
) -> None:
    path = study.root / "models/policy-1.start" / BENCHMARK / "results.json"
    path.unlink() if text is None else path.write_text(text)
    found = examples(study, 5)
    assert isinstance(found, str)
    assert found.startswith(f"models/policy-1.start/{BENCHMARK}/results.json: {reason}")
