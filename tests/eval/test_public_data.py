"""Public benchmark data: official files as they are, checked and recorded, images read when needed."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
from official_folders import TEXT, VISUAL, benchmark, png, records, write_folder, write_parquet
from PIL import Image
from shared_data import shared_data

from eval.datasets import files_of, load_questions
from eval.datasets.images import LazyImage
from eval.datasets.public import check_images
from eval.datasets.records import DataError, located, read_records
from eval.protocols.base import BenchmarkQuestion
from fastrl.rollouts import Question


def loaded(name: str, root: Path, rows: int | None) -> tuple[dict[str, Any], list[Question]]:
    config = benchmark(name, root, rows)
    return config, load_questions(config["dataset"], config["split"])


@pytest.mark.parametrize("name", [*VISUAL, *TEXT])
def test_a_folder_in_the_official_layout_is_read_with_its_images(name: str, tmp_path: Path) -> None:
    rows = write_folder(name, tmp_path)
    config, questions = loaded(name, tmp_path, rows)
    assert len(questions) == rows
    for question in questions:
        assert isinstance(question, BenchmarkQuestion)
        assert question.prompt.count("<image>") == len(question.images) == (name in VISUAL)
    check_images(tmp_path, questions)
    files = files_of(config["dataset"], config["split"], questions)
    assert files is not None and (files.rows, files.images) == (rows, rows * (name in VISUAL))


def test_a_shared_root_with_a_folder_per_benchmark_will_do(tmp_path: Path) -> None:
    rows = write_folder("geoqa8k_r1v", tmp_path / "geoqa")
    _, questions = loaded("geoqa8k_r1v", tmp_path, rows)
    assert len(questions) == rows


@pytest.mark.parametrize(
    ("name", "column", "file"),
    [
        ("mathvision", "decoded_image", "data/test-00000-of-00001-ab12.parquet"),
        ("mathvista", "decoded_image", "data/testmini-00000-of-00001.parquet"),
        ("mathverse", "image", "testmini.parquet"),
        ("geometry3k", "images", "data/test-00000-of-00001.parquet"),
    ],
)
def test_the_hubs_parquet_gives_the_same_questions_as_json_lines(
    name: str, column: str, file: str, tmp_path: Path
) -> None:
    write_folder(name, tmp_path / "lines", n=5)
    write_parquet(tmp_path / "hub" / file, records(name, 5), column)
    _, as_lines = loaded(name, tmp_path / "lines", 5)
    config, questions = loaded(name, tmp_path / "hub", 5)
    assert [(q.prompt, q.answer) for q in questions] == [(q.prompt, q.answer) for q in as_lines]
    if name != "geometry3k":  # it publishes no ids
        assert [question.id for question in questions] == [question.id for question in as_lines]
    for number, question in enumerate(questions):
        assert isinstance(question, BenchmarkQuestion)
        (reference,) = question.images
        image = LazyImage(located(tmp_path / "hub", reference))
        assert image.tobytes() == Image.open(io.BytesIO(png(number))).tobytes()
    before = files_of(config["dataset"], config["split"], questions)
    write_parquet(tmp_path / "hub" / file, records(name, 5)[::-1], column)
    after = files_of(config["dataset"], config["split"], questions)
    assert before is not None and after is not None and before.digest != after.digest


def test_shards_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    found = records("mathvision", 4)
    write_parquet(tmp_path / "data/test-00001-of-00002.parquet", found[2:], "decoded_image")
    write_parquet(tmp_path / "data/test-00000-of-00002.parquet", found[:2], "decoded_image")
    _, questions = loaded("mathvision", tmp_path, 4)
    assert [question.id for question in questions] == ["1", "2", "3", "4"]


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".json", ".json.gz"])
def test_json_in_every_form(suffix: str, tmp_path: Path) -> None:
    found = [{"a": 1, "b": "é"}, {"a": 2, "b": None}]
    text = json.dumps(found) if "jsonl" not in suffix else "\n".join(map(json.dumps, found)) + "\n\n"
    path = tmp_path / f"x{suffix}"
    path.write_bytes(gzip.compress(text.encode(), mtime=0) if suffix.endswith(".gz") else text.encode())
    assert read_records(path, path.name) == found


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.jsonl", b'{"a": 1}\n{"a"', "x.jsonl, line 2"),
        ("x.jsonl", b"[1]\n", "line 1: list instead of an object"),
        ("x.jsonl", b"\xff\xfe\n", "x.jsonl cannot be read"),
        ("x.jsonl.gz", gzip.compress(b'{"a": 1}\n' * 99, mtime=0)[:-9], "x.jsonl.gz cannot be read"),
        ("x.json", b'{"a": 1}', "something other than a list"),
        ("x.parquet", b"PAR1", "x.parquet cannot be read"),
        ("x.csv", b"a,b", "no known kind"),
    ],
)
def test_damaged_files_are_named(name: str, content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_records(tmp_path / name, name)


def test_missing_short_and_changed_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no data folder at .*nowhere; set data.root"):
        loaded("aime24", tmp_path / "nowhere", 3)
    with pytest.raises(
        DataError, match=r"none of data/train-\*.parquet, test.parquet.*HuggingFaceH4/aime_2024"
    ):
        loaded("aime24", tmp_path, 3)
    write_folder("aime24", tmp_path)
    with pytest.raises(DataError, match=r"test.jsonl: 3 rows where aime24, split test, has 30"):
        loaded("aime24", tmp_path, 30)
    config = benchmark("aime24", tmp_path, 3)
    config["dataset"]["splits"]["test"]["sha256"] = {"test.jsonl": "0" * 64}
    with pytest.raises(DataError, match=r"test.jsonl has changed: sha256 [0-9a-f]{64} where 0{64}"):
        load_questions(config["dataset"], "test")


def test_a_set_that_is_on_no_hub_or_cannot_be_fetched_says_what_to_do() -> None:
    with pytest.raises(DataError, match=r"geoqa8k_r1v is on no hub: .*data.root"):
        load_questions(benchmark("geoqa8k_r1v")["dataset"], "test")
    with pytest.raises(DataError, match=r"hub set AI4Math/MathVista at 2b6ad6.* set data.root"):
        load_questions(benchmark("mathvista")["dataset"], "testmini")


def test_missing_images_are_counted_and_the_first_is_named(tmp_path: Path) -> None:
    rows = write_folder("mathvista", tmp_path)
    _, questions = loaded("mathvista", tmp_path, rows)
    (tmp_path / "images/2.png").unlink()
    with pytest.raises(DataError, match=r"1 of 3 images are not in .*, first images/2.png of question '2'"):
        check_images(tmp_path, questions)


def test_a_changed_image_changes_the_digest(tmp_path: Path) -> None:
    rows = write_folder("mathvista", tmp_path)
    config, questions = loaded("mathvista", tmp_path, rows)
    before = files_of(config["dataset"], config["split"], questions)
    (tmp_path / "images/2.png").write_bytes(png(9))
    after = files_of(config["dataset"], config["split"], questions)
    assert before is not None and after is not None
    assert before.files == after.files and before.digest != after.digest


def test_a_lazy_image_keeps_no_pixels_and_shows_transparency_as_white(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(png(3, "RGBA"))
    image = LazyImage(str(path))
    assert image.size == (43, 50) and image.mode == "RGB"
    assert image.getpixel((0, 0)) == (255, 255, 255) and image.getpixel((10, 10)) == (0, 0, 0)
    assert image._im is None and image.convert("L").size == (43, 50)
    path.write_bytes(b"no image")
    with pytest.raises(DataError, match=r"a.png cannot be read"):
        image.load()
    path.unlink()
    with pytest.raises(DataError, match=r"a.png is missing"):
        image.load()


@pytest.mark.parametrize("reference", ["../secret.png", "/etc/passwd", "images/../../secret.png"])
def test_an_image_reference_stays_in_the_data_folder(reference: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="leaves the data folder"):
        located(tmp_path, reference)


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("aime24", 30),
        ("aime25", 30),
        ("geoqa8k_r1v", 754),
        ("math500", 500),
        ("mathverse_text_only", 788),
        ("mathvision", 3040),
        ("mathvision_testmini", 304),
        ("mathvista", 1000),
        ("wemath", 1740),
    ],
)
def test_the_published_files_are_whole(name: str, rows: int) -> None:
    config = benchmark(name)
    config["dataset"]["root"] = str(shared_data())
    questions = load_questions(config["dataset"], config["split"])
    assert len(questions) == rows
    files = files_of(config["dataset"], config["split"], questions)
    assert files is not None and len(files.files) == 1
