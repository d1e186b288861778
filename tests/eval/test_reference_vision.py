"""Benchmarks with images through the embedded engine's sampler: what transformers answers, it answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from official_folders import benchmark, write_folder
from PIL import Image
from tiny_policy import build_tiny_policy
from tiny_vision_policy import POSITIONS, build_tiny_vision_policy

from eval.evaluate import evaluate
from eval.results import read_samples

GREEDY = {"greedy": {"temperature": 0.0, "samples": 1}}
SAMPLED = {**GREEDY, "t1": {"temperature": 1.0, "samples": 4}}


def run(config: dict[str, Any], output: Path, checkpoint: Path) -> list[dict[str, Any]]:
    evaluate(
        checkpoint=checkpoint,
        benchmark=config,
        output=output,
        seed=0,
        stop_requested=lambda: False,
        announce=lambda line: None,
    )
    return read_samples(output / "samples.parquet")[0].to_pylist()  # type: ignore[no-any-return]


def asked(root: Path, rows: int, lm: str, **changes: Any) -> dict[str, Any]:
    shared = {"lm": lm, "batch_size": 8, "decodings": GREEDY, "pass_k": [1, 4], "chat_template": True}
    return benchmark("mathvision", root, rows, **(shared | changes))


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_vision_policy(tmp_path_factory.mktemp("vision") / "policy")


def test_greedy_answers_are_those_of_transformers(policy: Path, tmp_path: Path) -> None:
    rows = write_folder("mathvision", tmp_path / "data", n=5)
    own = run(asked(tmp_path / "data", rows, "reference"), tmp_path / "own", policy)
    theirs = run(asked(tmp_path / "data", rows, "hf-multimodal"), tmp_path / "theirs", policy)
    for one, other in zip(own, theirs, strict=True):
        for key in ("question_id", "response", "tokens", "truncated"):
            assert one[key] == other[key]


def test_questions_of_the_same_text_and_other_images_are_answered_apart(policy: Path, tmp_path: Path) -> None:
    rows = write_folder("mathvision", tmp_path / "data", n=4)
    (file,) = (tmp_path / "data").rglob("*.jsonl")
    records = [json.loads(line) for line in file.read_text().splitlines()]
    same = {"question": "How many dots?\n<image1>", "options": [], "answer": "3"}
    file.write_text("".join(json.dumps(record | same) + "\n" for record in records))
    for number, path in enumerate(sorted((tmp_path / "data/images").iterdir())):
        Image.effect_noise((56, 56), 40 + 40 * number).convert("RGB").save(path)
    config = asked(tmp_path / "data", rows, "reference", decodings=SAMPLED)
    samples = [row for row in run(config, tmp_path / "own", policy) if row["decoding"] == "t1"]
    assert len(samples) == 16
    theirs = run(asked(tmp_path / "data", rows, "hf-multimodal"), tmp_path / "theirs", policy)
    own = [
        row
        for row in read_samples(tmp_path / "own/samples.parquet")[0].to_pylist()
        if row["decoding"] == "greedy"
    ]
    assert [row["response"] for row in own] == [row["response"] for row in theirs]


def test_what_a_policy_cannot_read_is_refused(policy: Path, tmp_path: Path) -> None:
    rows = write_folder("mathvision", tmp_path / "data", n=2)
    untemplated = asked(tmp_path / "data", rows, "reference", chat_template=False)
    with pytest.raises(ValueError, match="set chat_template: true"):
        run(untemplated, tmp_path / "a", policy)
    blind = build_tiny_policy(tmp_path / "text")
    with pytest.raises(ValueError, match="reads text alone"):
        run(untemplated, tmp_path / "b", blind)
    full = asked(tmp_path / "data", rows, "reference", max_gen_toks=POSITIONS - 20)
    with pytest.raises(ValueError, match="lower max_gen_toks"):
        run(full, tmp_path / "c", policy)
