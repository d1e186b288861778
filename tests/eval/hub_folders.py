"""Small folders in the layout of the hub's training sets, with drawn images, and settings to match."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from PIL import Image, ImageDraw

from eval.preparation.settings import (
    CountedHubFiles,
    DiagramQuestionsSettings,
    HubFiles,
    MathSettings,
    MathSizes,
    OsAtlasSettings,
    Screenshots,
)
from eval.rewards.settings import BenchmarkAccuracyFormatSettings, GroundingSettings

CONF = Path(__file__).parents[2] / "experiments/conf/dataset"
IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
SUBJECTS = ("algebra", "geometry")


def png(number: int, side: int = 24) -> bytes:
    """A diagram of its own for every number."""
    image = Image.new("RGB", (side, side), "white")
    ImageDraw.Draw(image).line([(0, number % side), (side, number // side)], fill="black")
    content = io.BytesIO()
    image.save(content, "PNG")
    return content.getvalue()


def yaml_config(name: str) -> dict[str, Any]:
    config: dict[str, Any] = yaml.safe_load((CONF / f"{name}.yaml").read_text(encoding="utf-8"))
    return config


def diagram_settings(name: str, train: int, test: int) -> DiagramQuestionsSettings:
    """The set's own settings, with fewer questions."""
    config = yaml_config(name)
    sizes = {"train": train, "test": test}
    config["splits"] = {
        split: CountedHubFiles(**{**files, "files": tuple(files["files"]), "rows": sizes[split]})
        for split, files in config["splits"].items()
    }
    config["reward"] = BenchmarkAccuracyFormatSettings(**config["reward"])
    return DiagramQuestionsSettings(**config)


def write_parquet(path: Path, columns: Mapping[str, tuple[pa.DataType, Sequence[Any]]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    schema = pa.schema([(name, kind) for name, (kind, _) in columns.items()])
    pq.write_table(pa.table([values for _, values in columns.values()], schema=schema), path)


def geometry3k_folder(folder: Path, train: int = 5, test: int = 3) -> Path:
    """hiyouga/geometry3k: two shards of training questions, and the later columns beside ours."""
    numbers = range(train + test)
    shards = {
        "train-00000-of-00002": numbers[: train // 2],
        "train-00001-of-00002": numbers[train // 2 : train],
        "test-00000-of-00001": numbers[train:],
    }
    for shard, rows in shards.items():
        write_parquet(
            folder / "data" / f"{shard}.parquet",
            {
                "images": (pa.list_(IMAGE), [[{"bytes": png(n), "path": None}] for n in rows]),
                "problem": (pa.string(), [f"<image>Find x in figure {n}." for n in rows]),
                "answer": (pa.string(), [f"{n} \\sqrt {{3}}" for n in rows]),
                "choices": (pa.list_(pa.string()), [["1", "2"] for _ in rows]),
            },
        )
    return folder


def geoqa_folder(folder: Path, train: int = 4, test: int = 2) -> Path:
    """leonardPKU's two sets, each in a folder of its name: R1-V's columns, then EasyR1's."""
    rows = range(train)
    write_parquet(
        folder / "GEOQA_R1V_Train_8K/data/train-00000-of-00001.parquet",
        {
            "image": (IMAGE, [{"bytes": png(n), "path": None} for n in rows]),
            "problem": (pa.string(), [f"Angle {n}?" for n in rows]),
            "solution": (pa.string(), [f"<answer> {n}° </answer>" for n in rows]),
        },
    )
    rows = range(train, train + test)
    write_parquet(
        folder / "GEOQA_8K_R1V/data/test-00000-of-00001.parquet",
        {
            "images": (pa.list_(IMAGE), [[{"bytes": png(n), "path": None}] for n in rows]),
            "problem": (pa.string(), [f"<image>Angle {n}?" for n in rows]),
            "answer": (pa.string(), [f"{n}cm" for n in rows]),
        },
    )
    return folder


def math_records(train: int = 8, test: int = 4) -> dict[str, list[dict[str, str]]]:
    records = [
        {
            "problem": f"What is {n} + {n}?",
            "level": "Level 1",
            "type": SUBJECTS[n % 2].title(),
            "solution": f"It is $\\boxed{{{n}}}$, doubled: $\\boxed{{{2 * n}}}$.",
        }
        for n in range(train + test)
    ]
    return {"train": records[:train], "test": records[train:]}


def math_parquet_folder(folder: Path, records: Mapping[str, Sequence[Mapping[str, str]]]) -> Path:
    """EleutherAI/hendrycks_math: a parquet file per subject and split."""
    for split, rows in records.items():
        for subject in SUBJECTS:
            own = [row for row in rows if row["type"].lower() == subject]
            columns = {name: (pa.string(), [row[name] for row in own]) for name in own[0]}
            write_parquet(folder / subject / f"{split}-00000-of-00001.parquet", columns)
    return folder


def math_json_folder(folder: Path, records: Mapping[str, Sequence[Mapping[str, str]]]) -> Path:
    """The authors' archive: a JSON file per problem."""
    for split, rows in records.items():
        for number, row in enumerate(rows):
            path = folder / split / row["type"].lower() / f"{number}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(row), encoding="utf-8")
    return folder


def math_settings(split: str, train: int, test: int, seed: int = 0) -> MathSettings:
    config = yaml_config("math")
    config["official"] = {
        half: HubFiles(**{**files, "files": tuple(files["files"])})
        for half, files in config["official"].items()
    }
    config["sizes"] = {split: MathSizes(train, test)}
    config["reward"] = BenchmarkAccuracyFormatSettings(**config["reward"])
    return MathSettings(**{**config, "split": split, "seed": seed})


def os_atlas_settings(train: int, validation: int, seed: int = 0) -> OsAtlasSettings:
    """Two parts: a zip archive and elements per screenshot; a split archive and flat items."""
    config = yaml_config("os_atlas")
    config["parts"] = {
        "linux": Screenshots("desktop_domain/linux_splited.json", ("desktop_domain/linux_images.zip",)),
        "amex": Screenshots("mobile_domain/amex_raw.json", ("mobile_domain/amex_images_part_a?",)),
    }
    config["sizes"] = {"train": train, "validation": validation}
    config["reward"] = GroundingSettings(**config["reward"])
    return OsAtlasSettings(**{**config, "seed": seed})


def os_atlas_folder(folder: Path, screenshots: int = 6) -> Path:
    """Two elements per screenshot in each part; amex's archive is split in two and keeps them in a folder."""
    desktop, mobile = folder / "desktop_domain", folder / "mobile_domain"
    desktop.mkdir(parents=True)
    mobile.mkdir(parents=True)
    names = [f"shot_{n}.png" for n in range(screenshots)]
    grouped = [{"img_filename": name, "elements": _elements(n)} for n, name in enumerate(names)]
    (desktop / "linux_splited.json").write_text(json.dumps(grouped, indent=1), encoding="utf-8")
    with zipfile.ZipFile(desktop / "linux_images.zip", "w") as archive:
        for number, name in enumerate(names):
            archive.writestr(name, png(number))
    flat = [
        {"img_filename": f"m{name}", **element} for n, name in enumerate(names) for element in _elements(n)
    ]
    (mobile / "amex_raw.json").write_text(json.dumps(flat), encoding="utf-8")
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for number, name in enumerate(names):
            archive.writestr(f"amex_images/m{name}", png(100 + number))
    half = len(content.getvalue()) // 2
    (mobile / "amex_images_part_aa").write_bytes(content.getvalue()[:half])
    (mobile / "amex_images_part_ab").write_bytes(content.getvalue()[half:])
    return folder


def _elements(number: int) -> list[dict[str, Any]]:
    return [
        {
            "instruction": f"button {number} {side}",
            "bbox": [left, 0.25, left + 0.1, 0.5],
            "data_type": "button",
        }
        for side, left in (("left", 0.1), ("right", 0.6))
    ]
