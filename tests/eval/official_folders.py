"""Tiny data folders in the official schemas of the public benchmarks, with drawn images."""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from PIL import Image, ImageDraw

CONF = Path(__file__).parents[2] / "experiments" / "conf"
VISUAL = (
    "geometry3k",
    "geoqa8k_r1v",
    "mathverse",
    "mathvision",
    "mathvision_testmini",
    "mathvista",
    "wemath",
)
TEXT = ("aime24", "aime25", "math", "math500", "mathverse_text_only")


@cache
def _composed(name: str) -> dict[str, Any]:
    with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
        config = compose(overrides=[f"+benchmark={name}"])
    benchmarks: dict[str, Any] = OmegaConf.to_container(config.benchmarks, resolve=True)  # type: ignore[assignment]
    return benchmarks[name]


def benchmark(name: str, root: Path | None = None, rows: int | None = None, **changes: Any) -> dict[str, Any]:
    """A benchmark as experiments/conf composes it, on a CPU, with a data folder of so many rows."""
    config = copy.deepcopy(_composed(name))
    config |= {"device": "cpu", "dtype": "float32", "max_gen_toks": 12, "truncation_alarm": 1.0}
    if root is not None:
        config["dataset"]["root"] = str(root)
        config["dataset"]["splits"][config["split"]] |= {"rows": rows, "sha256": {}}
    return config | changes


def png(number: int, mode: str = "RGB") -> bytes:
    """A drawn figure, another one for each number."""
    image = Image.new(mode, (40 + number, 50), 0 if mode == "RGBA" else "white")
    ImageDraw.Draw(image).rectangle((5, 5, 20 + number, 30), fill="black")
    content = io.BytesIO()
    image.save(content, "PNG")
    return content.getvalue()


def records(name: str, n: int = 3) -> list[dict[str, Any]]:
    """n records as the benchmark publishes them; We-Math's are a two-step group each."""
    made = {
        "aime24": _competition,
        "aime25": _competition,
        "geometry3k": _geometry3k,
        "geoqa8k_r1v": _geoqa,
        "math": _competition,
        "math500": _competition,
        "mathverse": _mathverse,
        "mathverse_text_only": _mathverse,
        "mathvision": _mathvision,
        "mathvision_testmini": _mathvision,
        "mathvista": _mathvista,
    }
    if name == "wemath":
        return [record for group in range(n) for record in _wemath_group(group)]
    found = [made[name](number) for number in range(n)]
    if name == "mathverse_text_only":
        found = [{**record, "problem_version": "Text Only", "image": ""} for record in found]
    return found


def write_folder(name: str, folder: Path, n: int = 3) -> int:
    """A folder of JSON lines and PNGs in the benchmark's layout; returns the number of records."""
    found = records(name, n)
    config = _composed(name)
    patterns = config["dataset"]["splits"][config["split"]]["files"]
    file = next(pattern for pattern in patterns if pattern.endswith(".jsonl"))
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text("".join(json.dumps(record) + "\n" for record in found))
    for number, path in enumerate(_image_paths(found)):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(png(number))
    return len(found)


def write_parquet(path: Path, found: Sequence[dict[str, Any]], column: str) -> None:
    """The records as the hub has them: the images as bytes in a column, two rows to a row group."""
    rows = []
    for number, record in enumerate(found):
        image = {"bytes": png(number), "path": None}
        rows.append({**record, column: [image] if column == "images" else image})
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=2)


def _image_paths(found: Sequence[dict[str, Any]]) -> list[str]:
    paths = []
    for record in found:
        value = record.get("images", record.get("image_path", record.get("image")))
        paths += value if isinstance(value, list) else [value] if value else []
    return paths


def _competition(number: int) -> dict[str, Any]:
    problem = f"What is {number} + 40?"
    answer = str(number + 40)
    return {
        "id": 60 + number,
        "problem": problem,
        "solution": f"It is \\boxed{{{answer}}}.",
        "answer": answer,
        "subject": "Algebra",
        "type": "Algebra",
        "level": 1 + number % 5,
        "unique_id": f"test/algebra/{number}.json",
    }


def _geometry3k(number: int) -> dict[str, Any]:
    problem = f"<image>Find x, side {number}."
    return {"images": [f"images/{number}.png"], "problem": problem, "answer": str(number + 3)}


def _geoqa(number: int) -> dict[str, Any]:
    question = f"As shown in the figure, how large is angle {number}?"
    return {
        "image_path": f"images/test/{number}.png",
        "question": question,
        "ground_truth": f"{number + 30}°",
    }


def _mathverse(number: int) -> dict[str, Any]:
    question = f"As shown, what is the size of angle {number}?\nChoices:\nA:40°\nB:60°\nC:120°\nD:140°"
    return {
        "sample_index": str(number + 1),
        "problem_index": str(number + 1),
        "problem_version": ("Text Dominant", "Text Lite", "Vision Only")[number % 3],
        "question": question,
        "image": f"images_version_1-4/image_{number + 1}.png",
        "answer": "ABCD"[number % 4],
        "question_type": "multi-choice",
        "metadata": {
            "split": "testmini",
            "source": "GeoQA",
            "subject": "Plane Geometry",
            "subfield": "Angle",
        },
        "query_wo": f"Please directly answer the question.\nQuestion: {question}",
        "query_cot": f"Please first conduct reasoning.\nQuestion: {question}",
    }


def _mathvision(number: int) -> dict[str, Any]:
    return {
        "id": str(number + 1),
        "question": f"How many dots are in figure {number}?\n<image1>",
        "options": ["1", "2", "3", "4", "5"] if number % 2 else [],
        "answer": "B" if number % 2 else str(number),
        "solution": None,
        "level": 1 + number % 5,
        "subject": "counting",
        "image": f"images/{number + 1}.png",
    }


def _mathvista(number: int) -> dict[str, Any]:
    return {
        "pid": str(number + 1),
        "question": f"How many bars has chart {number}?",
        "image": f"images/{number + 1}.png",
        "choices": None,
        "unit": None,
        "precision": None,
        "answer": str(number + 2),
        "question_type": "free_form",
        "answer_type": "integer",
        "metadata": {
            "split": "testmini",
            "language": "english",
            "img_width": 40,
            "img_height": 50,
            "source": "Drawn",
            "category": "math-targeted-vqa",
            "task": "figure question answering",
            "context": "bar chart",
            "grade": "elementary school",
            "skills": ["statistical reasoning", "arithmetic reasoning"],
        },
    }


def _wemath_group(group: int) -> list[dict[str, Any]]:
    steps = (("2steps_1", 1), ("2steps_2", 2), ("2steps_multi", 3))
    return [
        {
            "ID": f"2steps_{group + 1}",
            "split": "testmini",
            "knowledge concept": f"Concept {number}",
            "question": f"Group {group}, step {number}: which length?",
            "option": "A. 1;B. 2;C. 3; D. No correct answer",
            "answer": "ABC"[number - 1],
            "image_path": f"images/2steps/{group}-{number}.png",
            "key": key,
            "question number": group + 1,
            "knowledge concept description": f"Concept {number}: lengths",
        }
        for key, number in steps
    ]
