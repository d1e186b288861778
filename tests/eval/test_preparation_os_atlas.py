"""Drawing OS-Atlas elements: seeded, independent of the files' order, from archives as the hub ships them."""

from __future__ import annotations

import json
import random
import shutil
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hub_folders import os_atlas_folder, os_atlas_settings, png
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.datasets.records import DataError
from eval.preparation.archives import StoredFiles
from eval.preparation.json_array import array_items
from eval.preparation.os_atlas import box_text
from eval.preparation.prepare import prepare
from eval.rewards.bounding_boxes import last_box

LINUX = "desktop_domain/linux_splited.json"
AMEX = "mobile_domain/amex_raw.json"


def drawn(
    folder: Path, out: Path, train: int = 8, validation: int = 3, seed: int = 0
) -> dict[str, list[str]]:
    prepare(os_atlas_settings(train, validation, seed), folder, out)
    return {
        split: [row["question_id"] for row in pq.read_table(out / f"{split}.parquet").to_pylist()]
        for split in ("train", "validation")
    }


def edited(path: Path, edit: Any) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(edit(content)), encoding="utf-8")


def test_a_draw_takes_from_every_part_and_no_element_twice(tmp_path: Path) -> None:
    ids = drawn(os_atlas_folder(tmp_path / "hub"), tmp_path / "out", train=20, validation=4)
    assert len(set(ids["train"] + ids["validation"])) == 24
    families = pq.read_table(tmp_path / "out/train.parquet")["family"].to_pylist()
    assert set(families) == {"linux", "amex"}


def test_a_draw_depends_on_the_seed_and_not_on_the_order_of_the_annotations(tmp_path: Path) -> None:
    folder = os_atlas_folder(tmp_path / "hub")
    first = drawn(folder, tmp_path / "one")
    for path in (LINUX, AMEX):
        edited(folder / path, lambda items: random.Random(1).sample(items, len(items)))
    assert drawn(folder, tmp_path / "two") == first
    assert drawn(folder, tmp_path / "three", seed=1) != first


def test_a_larger_draw_holds_the_smaller_one(tmp_path: Path) -> None:
    folder = os_atlas_folder(tmp_path / "hub")
    small = drawn(folder, tmp_path / "one", train=5, validation=1)
    assert drawn(folder, tmp_path / "two", train=15, validation=1)["train"][:5] == small["train"]


def test_an_element_that_is_annotated_twice_counts_once(tmp_path: Path) -> None:
    folder = os_atlas_folder(tmp_path / "hub", screenshots=3)
    edited(folder / LINUX, lambda items: items + items)
    with pytest.raises(DataError, match="the split train has 12 questions where 13 are expected"):
        drawn(folder, tmp_path / "out", train=13, validation=0)


def test_rows_ask_for_the_element_and_answer_with_its_box_in_thousandths(tmp_path: Path) -> None:
    drawn(os_atlas_folder(tmp_path / "hub"), tmp_path / "out")
    for row in pq.read_table(tmp_path / "out/train.parquet").to_pylist():
        side = "left" if " left" in row["problem"] else "right"
        assert row["answer"] == {"left": "[100, 250, 200, 500]", "right": "[600, 250, 700, 500]"}[side]
        assert "0 to 1000" in row["problem"]


@given(st.lists(st.floats(0, 1), min_size=4, max_size=4), st.integers(1, 10_000))
def test_gold_boxes_are_read_back_by_the_reward(shares: list[float], scale: int) -> None:
    left, right = sorted(shares[:2])
    top, bottom = sorted(shares[2:])
    box = last_box(box_text((left, top, right, bottom), scale))
    assert box is not None
    assert (box.left, box.bottom) == (round(left * scale), round(bottom * scale))


def test_elements_that_cannot_be_asked_for_are_left_out_and_counted(tmp_path: Path) -> None:
    folder = os_atlas_folder(tmp_path / "hub", screenshots=2)

    def spoil(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
        shot = {"img_filename": "shot_0.png"}
        return [
            *items,
            {**shot, "elements": [{"instruction": " ", "bbox": [0, 0, 1, 1]}]},
            {**shot, "elements": [{"instruction": "a", "bbox": [0.1, 0.1, 0.1, 0.2]}]},
            {**shot, "elements": [{"instruction": "a", "bbox": [0.1, 0.1, 1.2, 0.2]}]},
            {**shot, "elements": [{"instruction": "an <image>", "bbox": [0, 0, 1, 1]}]},
            {"img_filename": "lost.png", "elements": [{"instruction": "a", "bbox": [0, 0, 1, 1]}]},
        ]

    edited(folder / LINUX, spoil)
    card = prepare(os_atlas_settings(8, 0), folder, tmp_path / "out")
    assert card["notes"]["elements"] == {"linux": 9, "amex": 4}
    assert card["notes"]["left_out"]["linux"] == {
        "no instruction": 1,
        "box without an area": 1,
        "box outside the screenshot": 1,
        "<image> in the instruction": 1,
        "screenshot not in the archives": 1,
    }


@pytest.mark.parametrize(
    "item",
    [
        "shot_0.png",
        {"elements": []},
        {"img_filename": "shot_0.png", "elements": [{"instruction": "a", "bbox": [0, 0, 1]}]},
        {"img_filename": "shot_0.png", "elements": [{"instruction": 3, "bbox": [0, 0, 1, 1]}]},
        {"img_filename": "shot_0.png", "bbox": [0, 0, 1, 1]},
    ],
)
def test_a_malformed_annotation_is_named_with_its_file_and_item(item: Any, tmp_path: Path) -> None:
    folder = os_atlas_folder(tmp_path / "hub", screenshots=2)
    edited(folder / LINUX, lambda items: [items[0], item])
    with pytest.raises(DataError, match=r"linux_splited\.json, item 1: "):
        drawn(folder, tmp_path / "out")


def test_a_corrupt_screenshot_is_named_with_its_annotation(tmp_path: Path) -> None:
    folder = os_atlas_folder(tmp_path / "hub", screenshots=1)
    with zipfile.ZipFile(folder / "desktop_domain/linux_images.zip", "w") as archive:
        archive.writestr("shot_0.png", png(0)[:50])
    with pytest.raises(DataError, match=r"item 0, screenshot shot_0\.png: the image does not"):
        drawn(folder, tmp_path / "out", train=4, validation=0)


def test_screenshots_may_be_unpacked_into_a_folder(tmp_path: Path) -> None:
    folder = os_atlas_folder(tmp_path / "hub")
    first = drawn(folder, tmp_path / "one")
    archive = folder / "desktop_domain/linux_images.zip"
    shutil.unpack_archive(archive, tmp_path / "unpacked")
    archive.unlink()
    (tmp_path / "unpacked").rename(archive)
    assert drawn(folder, tmp_path / "two") == first


def test_a_lost_part_of_a_split_archive_is_named(tmp_path: Path) -> None:
    folder = os_atlas_folder(tmp_path / "hub")
    (folder / "mobile_domain/amex_images_part_ab").unlink()
    with pytest.raises(DataError, match=r"amex_images_part_a\? is no whole zip archive"):
        drawn(folder, tmp_path / "out")


def test_a_name_that_two_files_of_an_archive_share_is_found_by_its_path_alone(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name in ("x/1.png", "y/1.png", "y/2.png"):
            archive.writestr(name, name)
    with StoredFiles(tmp_path, ["a.zip"]) as stored:
        assert stored.read("y/1.png") == b"y/1.png"
        assert stored.read("2.png") == b"y/2.png"
        assert "1.png" not in stored
        assert "../a.zip" not in stored


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=6,
)


@settings(max_examples=40)
@given(items=st.lists(JSON, max_size=6), indent=st.sampled_from([None, 1]), characters=st.integers(1, 40))
def test_items_of_an_array_come_out_whatever_the_size_of_the_pieces(
    items: list[Any], indent: int | None, characters: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "array.json"
    path.write_text(json.dumps(items, indent=indent, ensure_ascii=False), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("eval.preparation.json_array._CHARACTERS", characters)
        assert list(array_items(path)) == items


@pytest.mark.parametrize("content", ["[1, 2", "[1, }", "{}", "", '["a'])
def test_an_array_that_is_cut_or_none_at_all_is_named(content: str, tmp_path: Path) -> None:
    path = tmp_path / "array.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=r"array\.json"):
        list(array_items(path))


def test_a_long_annotation_file_is_not_held_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eval.preparation.json_array._CHARACTERS", 4096)
    path = tmp_path / "array.json"
    item = json.dumps({"img_filename": "a.png", "instruction": "x" * 400, "bbox": [0, 0, 1, 1]})
    path.write_text("[" + ", ".join([item] * 3_000) + "]", encoding="utf-8")
    tracemalloc.start()
    try:
        assert sum(1 for _ in array_items(path)) == 3_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < path.stat().st_size / 4
