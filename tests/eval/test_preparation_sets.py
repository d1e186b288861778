"""Preparing the training sets: what every set promises, on small folders in hub layout."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hub_folders import (
    IMAGE,
    diagram_settings,
    geometry3k_folder,
    geoqa_folder,
    math_json_folder,
    math_parquet_folder,
    math_records,
    math_settings,
    os_atlas_folder,
    os_atlas_settings,
    png,
    write_parquet,
    yaml_config,
)
from PIL import Image

from eval.datasets.records import DataError
from eval.extraction.boxed import gold_answer
from eval.preparation import PREPARATIONS
from eval.preparation.images import checked_image
from eval.preparation.prepare import prepare, read_card
from eval.preparation.settings import PreparationSettings


@dataclass(frozen=True)
class Example:
    """A set, a folder of it, and its sizes there."""

    settings: PreparationSettings
    make: Callable[[Path], Path]
    sizes: dict[str, int]


EXAMPLES = {
    "geometry3k": Example(diagram_settings("geometry3k", 5, 3), geometry3k_folder, {"train": 5, "test": 3}),
    "geoqa8k_r1v": Example(diagram_settings("geoqa8k_r1v", 4, 2), geoqa_folder, {"train": 4, "test": 2}),
    "math": Example(
        math_settings("released", 10, 2),
        lambda folder: math_parquet_folder(folder, math_records()),
        {"train": 10, "test": 2},
    ),
    "os_atlas": Example(os_atlas_settings(8, 3), os_atlas_folder, {"train": 8, "validation": 3}),
}


def rows_of(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return rows


@pytest.fixture(params=sorted(EXAMPLES))
def example(request: pytest.FixtureRequest) -> Example:
    return EXAMPLES[request.param]


def test_every_published_set_has_an_example_here() -> None:
    assert set(EXAMPLES) == set(PREPARATIONS) - {"laptop_figures"}  # drawn here: test_laptop_figures.py


def test_a_set_becomes_one_parquet_file_per_split_and_a_card(example: Example, tmp_path: Path) -> None:
    card = prepare(example.settings, example.make(tmp_path / "hub"), tmp_path / "out")
    for split, size in example.sizes.items():
        path = tmp_path / "out" / f"{split}.parquet"
        assert len(rows_of(path)) == size
        facts = card["splits"][split]
        assert facts["questions"] == size
        assert facts["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert read_card(tmp_path / "out") == card
    assert card["questions"] == sum(example.sizes.values())
    page = (tmp_path / "out/data_card.md").read_text(encoding="utf-8")
    assert example.settings.licence in page
    assert all(facts["sha256"] in page for facts in card["splits"].values())
    assert not [path for path in (tmp_path / "out").iterdir() if "draft" in path.name]


def test_rows_are_in_the_schema_that_easyr1_reads(example: Example, tmp_path: Path) -> None:
    prepare(example.settings, example.make(tmp_path / "hub"), tmp_path / "out")
    for split in example.sizes:
        for row in rows_of(tmp_path / "out" / f"{split}.parquet"):
            assert isinstance(row["problem"], str) and isinstance(row["answer"], str) and row["answer"]
            assert row["question_id"].startswith(f"{example.settings.name}-")
            images = row.get("images", [])
            assert row["problem"].count("<image>") == len(images)
            for image in images:
                with Image.open(io.BytesIO(image["bytes"])) as opened:
                    assert opened.size == (24, 24)


def test_the_datasets_library_decodes_the_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from datasets import Dataset

    prepare(EXAMPLES["geometry3k"].settings, geometry3k_folder(tmp_path / "hub"), tmp_path / "out")
    read = Dataset.from_parquet(str(tmp_path / "out/train.parquet"), cache_dir=str(tmp_path / "cache"))
    assert read[0]["images"][0].size == (24, 24)
    assert read[0]["problem"] == "<image>Find x in figure 0."


def test_an_image_that_engines_would_read_differently_is_refused_by_its_place() -> None:
    file = io.BytesIO()
    Image.new("I;16", (4, 4), 40_000).save(file, format="PNG")
    with pytest.raises(DataError, match=r"row 3: the image has more than 8 bits .*; save it with 8"):
        checked_image(file.getvalue(), "row 3")


def test_ids_are_unique_and_stay_the_same_wherever_the_rows_stand(example: Example, tmp_path: Path) -> None:
    prepare(example.settings, example.make(tmp_path / "hub"), tmp_path / "one")
    prepare(example.settings, tmp_path / "hub", tmp_path / "two")
    ids: list[str] = []
    for split in example.sizes:
        first, second = tmp_path / "one" / f"{split}.parquet", tmp_path / "two" / f"{split}.parquet"
        assert first.read_bytes() == second.read_bytes()
        ids += [row["question_id"] for row in rows_of(first)]
    assert len(set(ids)) == len(ids)


def test_a_question_that_occurs_again_has_an_id_of_its_own_and_is_counted(tmp_path: Path) -> None:
    folder = geometry3k_folder(tmp_path / "hub", train=2, test=1)
    columns = {
        "images": (pa.list_(IMAGE), [[{"bytes": png(0), "path": None}]] * 2),
        "problem": (pa.string(), ["<image>Find x in figure 0."] * 2),
        "answer": (pa.string(), ["0 \\sqrt {3}"] * 2),
    }
    write_parquet(folder / "data/train-00001-of-00002.parquet", columns)
    card = prepare(diagram_settings("geometry3k", 3, 1), folder, tmp_path / "out")
    first, second, third = [row["question_id"] for row in rows_of(tmp_path / "out/train.parquet")]
    assert [second, third] == [f"{first}-2", f"{first}-3"]
    assert card["splits"]["train"]["repeated"] == 2


def test_a_split_of_another_size_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    folder = geometry3k_folder(tmp_path / "hub")
    prepare(diagram_settings("geometry3k", 5, 3), folder, tmp_path / "out")
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    with pytest.raises(DataError, match=r"geometry3k: the split train has 5 questions where 2,101 are"):
        prepare(diagram_settings("geometry3k", 2101, 3), folder, tmp_path / "out")
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_what_a_killed_preparation_left_is_cleared_away(example: Example, tmp_path: Path) -> None:
    left = tmp_path / "out/.draft"
    left.mkdir(parents=True)
    (left / "train.parquet").write_bytes(b"half")
    assert read_card(tmp_path / "out") is None
    prepare(example.settings, example.make(tmp_path / "hub"), tmp_path / "out")
    assert not left.exists()
    assert read_card(tmp_path / "out") is not None


@pytest.mark.parametrize("content", [b"", b"no image at all", png(1)[:60]], ids=["empty", "text", "cut"])
def test_a_corrupt_image_is_named_with_its_file_and_row(content: bytes, tmp_path: Path) -> None:
    folder = geometry3k_folder(tmp_path / "hub", train=2, test=2)
    columns = {
        "images": (pa.list_(IMAGE), [[{"bytes": image, "path": None}] for image in (png(7), content)]),
        "problem": (pa.string(), ["<image>a", "<image>b"]),
        "answer": (pa.string(), ["1", "2"]),
    }
    write_parquet(folder / "data/test-00000-of-00001.parquet", columns)
    with pytest.raises(DataError, match=r"data/test-00000-of-00001\.parquet, row 1, image 0: "):
        prepare(diagram_settings("geometry3k", 2, 2), folder, tmp_path / "out")
    assert read_card(tmp_path / "out") is None


@pytest.mark.parametrize(
    ("problem", "answer", "message"),
    [
        ("<image>a", "", "row 1: answer is ''"),
        (None, "1", "row 1: problem is None"),
        ("<image><image>a", "1", "row 1: the problem has 2 <image> for 1 images"),
    ],
)
def test_a_corrupt_row_is_named_with_its_file_and_number(
    problem: str | None, answer: str, message: str, tmp_path: Path
) -> None:
    folder = geometry3k_folder(tmp_path / "hub", train=2, test=2)
    columns = {
        "images": (pa.list_(IMAGE), [[{"bytes": png(n), "path": None}] for n in range(2)]),
        "problem": (pa.string(), ["<image>a", problem]),
        "answer": (pa.string(), ["1", answer]),
    }
    write_parquet(folder / "data/test-00000-of-00001.parquet", columns)
    with pytest.raises(DataError, match=rf"data/test-00000-of-00001\.parquet, {message}"):
        prepare(diagram_settings("geometry3k", 2, 2), folder, tmp_path / "out")


def test_a_missing_column_and_a_damaged_file_are_named(tmp_path: Path) -> None:
    folder = geometry3k_folder(tmp_path / "hub", train=2, test=1)
    path = folder / "data/test-00000-of-00001.parquet"
    write_parquet(path, {"problem": (pa.string(), ["a"]), "answer": (pa.string(), ["1"])})
    with pytest.raises(DataError, match=r"row 0: there is no images in it, but problem"):
        prepare(diagram_settings("geometry3k", 2, 1), folder, tmp_path / "out")
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"test-00000-of-00001\.parquet, row 0: cannot be read"):
        prepare(diagram_settings("geometry3k", 2, 1), folder, tmp_path / "out")


def test_without_folder_and_network_it_says_what_to_fetch_and_where_to_put_it(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    with pytest.raises(DataError) as raised:
        prepare(example.settings, None, tmp_path / "out")
    for part in (
        "hf download --repo-type dataset",
        "--local-dir FOLDER",
        f"prepare {example.settings.name} --from",
    ):
        assert part in str(raised.value)
    assert not (tmp_path / "out").exists()


def test_an_empty_folder_is_told_what_belongs_in_it(example: Example, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="hf download --repo-type dataset"):
        prepare(example.settings, tmp_path, tmp_path / "out")
    with pytest.raises(DataError, match="there is no folder"):
        prepare(example.settings, tmp_path / "nowhere", tmp_path / "out")


def test_the_published_sizes_are_in_the_configs() -> None:
    rows = {
        name: {split: files["rows"] for split, files in yaml_config(name)["splits"].items()}
        for name in ("geometry3k", "geoqa8k_r1v")
    }
    assert rows == {"geometry3k": {"train": 2101, "test": 601}, "geoqa8k_r1v": {"train": 8031, "test": 754}}
    assert yaml_config("math")["sizes"] == {
        "released": {"train": 11250, "test": 1250},
        "official": {"train": 7500, "test": 5000},
    }
    assert yaml_config("os_atlas")["sizes"]["train"] == 50_000


def test_math_is_the_same_from_parquet_and_from_the_authors_archive(tmp_path: Path) -> None:
    records = math_records()
    prepare(math_settings("released", 10, 2), math_parquet_folder(tmp_path / "a", records), tmp_path / "one")
    prepare(math_settings("released", 10, 2), math_json_folder(tmp_path / "b", records), tmp_path / "two")
    for split in ("train", "test"):
        name = f"{split}.parquet"
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_maths_released_split_draws_from_all_problems_with_the_seed(tmp_path: Path) -> None:
    records = math_records(16, 8)
    folder = math_parquet_folder(tmp_path / "hub", records)
    tests = []
    for seed in range(4):
        prepare(math_settings("released", 20, 4, seed), folder, tmp_path / f"out{seed}")
        rows = {split: rows_of(tmp_path / f"out{seed}/{split}.parquet") for split in ("train", "test")}
        problems = [row["problem"] for split in rows.values() for row in split]
        assert sorted(problems) == sorted(row["problem"] for half in records.values() for row in half)
        tests.append({row["problem"] for row in rows["test"]})
    assert len(set(map(frozenset, tests))) > 1


def test_maths_official_split_is_the_authors(tmp_path: Path) -> None:
    records = math_records()
    prepare(math_settings("official", 8, 4), math_parquet_folder(tmp_path / "hub", records), tmp_path / "out")
    for split, rows in records.items():
        prepared = {row["problem"]: row for row in rows_of(tmp_path / "out" / f"{split}.parquet")}
        assert set(prepared) == {row["problem"] for row in rows}
        assert all(
            prepared[f"What is {n} + {n}?"]["answer"] == str(2 * n)
            for n in range(12)
            if f"What is {n} + {n}?" in prepared
        )
        assert {row["family"] for row in prepared.values()} == {"Algebra", "Geometry"}


@pytest.mark.parametrize(
    ("solution", "answer"),
    [
        (r"so $\boxed{3}$ and $\boxed{\frac{1}{2}}$", r"\frac{1}{2}"),
        (r"so \fbox{7}.", "7"),
        (r"so $\boxed 2$.", "2"),
        ("no box", None),
    ],
)
def test_the_gold_answer_of_a_solution_is_its_last_box(solution: str, answer: str | None) -> None:
    assert gold_answer(solution) == answer


def test_a_solution_without_an_answer_is_named(tmp_path: Path) -> None:
    records = math_records()
    records["test"][1]["solution"] = "it is obvious"
    folder = math_parquet_folder(tmp_path / "hub", records)
    with pytest.raises(DataError, match=r"/test-00000-of-00001\.parquet, row 0: .*no \\boxed answer: 'it is"):
        prepare(math_settings("released", 10, 2), folder, tmp_path / "out")


def test_a_split_that_the_old_preparation_had_and_the_new_one_has_not_goes(tmp_path: Path) -> None:
    prepare(os_atlas_settings(4, 2), os_atlas_folder(tmp_path / "hub"), tmp_path / "out")
    card = json.loads((tmp_path / "out/data_card.json").read_text(encoding="utf-8"))
    prepare(EXAMPLES["math"].settings, math_parquet_folder(tmp_path / "m", math_records()), tmp_path / "out")
    assert set(card["splits"]) == {"train", "validation"}
    assert not (tmp_path / "out/validation.parquet").exists()
