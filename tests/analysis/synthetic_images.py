"""What a study on images has besides: shuffled images, greedy answers, a record of the starting policy."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from synthetic_study import IN_DOMAIN, SyntheticArm, write_study

from analysis.tables.images import SHUFFLED
from eval.datasets.laptop_figures.png import grey_png
from experiments.plan import Plan, write_plan
from experiments.run_directory import RunDirectory

POLICY = "policy-0123456789"
FAMILIES = ("angle sum", "isosceles", "rectangle area", "square perimeter")
SIDE = 40
"""Pixels of an image."""


def write_image_study(root: Path, arms: Sequence[SyntheticArm], study: str) -> Plan:
    """A synthetic study whose benchmark has images: the plan asks for what is about images."""
    written = write_study(root, arms, study, ["images"], ["examples"])
    shuffled = f"{IN_DOMAIN}{SHUFFLED}"
    cells = tuple(replace(cell, stages=(*cell.stages, f"evaluate-{shuffled}")) for cell in written.cells)
    plan = replace(written, cells=cells)
    write_plan(root, plan)
    start = root / "models" / f"{POLICY}.start" / IN_DOMAIN
    start.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(_questions()), start / "questions.parquet")
    answers = _answers(0.3, np.random.default_rng(99))
    write_samples(start, answers, {"benchmark": IN_DOMAIN})
    for number, cell in enumerate(cells):
        run = RunDirectory(root / "runs" / cell.run_id)
        _rewrite(run.provenance_path, {"policy": POLICY})
        status = json.loads(run.status_path.read_text())
        _rewrite(run.status_path, {f"evaluate-{shuffled}": status["train"]})
        results = json.loads(run.results_path(IN_DOMAIN).read_text())
        for name, chance in ((IN_DOMAIN, 0.6 + 0.1 * (number % 3)), (shuffled, 0.2)):
            answers = _answers(chance, np.random.default_rng(number))
            write_samples(run.evaluation_path(name), answers, {**results, "benchmark": name})
    return plan


def write_samples(folder: Path, answers: Sequence[dict[str, Any]], results: dict[str, Any]) -> None:
    """Write the samples of a benchmark, with the accuracies that they give in their results."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(answers)), folder / "samples.parquet")
    questions = len({answer["question_id"] for answer in answers})
    decodings = {}
    for name in dict.fromkeys(answer["decoding"] for answer in answers):
        right = [answer["correct"] for answer in answers if answer["decoding"] == name]
        decodings[name] = {
            "temperature": float(name == "t1"),
            "samples": len(right) // questions,
            "metrics": {"accuracy": sum(right) / len(right)},
        }
    record = {"schema": 1, **results, "n_questions": questions, "decodings": decodings}
    (folder / "results.json").write_text(json.dumps(record))


def _rewrite(path: Path, more: dict[str, Any]) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **more}))


def _questions() -> list[dict[str, Any]]:
    return [
        {
            "question_id": f"question/{number}",
            "prompt": f"<image>Find the side x of the {family}.",
            "answer": str(10 + number),
            "family": family,
            "images": [_image(number)],
        }
        for number, family in enumerate(FAMILIES)
    ]


def _image(number: int) -> bytes:
    """A frame whose thickness tells the question."""
    rows, columns = np.indices((SIDE, SIDE))
    edge = np.minimum.reduce([rows, columns, SIDE - 1 - rows, SIDE - 1 - columns])
    pixels = np.where((edge >= 4) & (edge < 6 + 2 * number), 0, 255).astype(np.uint8)
    return grey_png(SIDE, SIDE, pixels.tobytes())


def _answers(chance: float, rng: np.random.Generator) -> list[dict[str, Any]]:
    found = []
    for number in range(len(FAMILIES)):
        right = bool(rng.random() < chance)
        text = str(10 + number) if right else None if number == 3 else str(20 + number)
        answer = {"question_id": f"question/{number}", "sample": 0, "extracted": text, "correct": right}
        found += [{"decoding": decoding, **answer} for decoding in ("t1", "greedy")]
    return found
