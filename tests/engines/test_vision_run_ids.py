"""The settings for images leave runs without images the runs that they were."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from experiments.compose import compose_cell
from experiments.identity import identity_part, run_id
from experiments.schema import check_config

PUBLISHED = Path(__file__).parents[2] / "docs" / "results" / "laptop_text_full" / "plan.json"
TEXT = [
    *("model=laptop_llama", "dataset=laptop_geometry", "training=laptop", "engine=reference"),
    "benchmark=[laptop_geometry,laptop_geometry_ood]",
]


def test_the_published_text_runs_keep_their_ids() -> None:
    cells = json.loads(PUBLISHED.read_text())["cells"]
    # CPPO got settings of its own after these runs.
    text = [cell for cell in cells if not cell["method"].startswith("cppo")]
    assert len(text) > 100
    for cell in text:
        assert run_id(compose_cell([*TEXT, *cell["overrides"]])) == cell["run_id"]


@pytest.mark.parametrize("frozen", ["true", "false"])
def test_freezing_the_tower_is_part_of_a_runs_identity(frozen: str) -> None:
    config = compose_cell(["engine=reference_vision", f"engine.freeze_vision_tower={frozen}"])
    assert identity_part(config)["engine"]["freeze_vision_tower"] is (frozen == "true")
    text = compose_cell(TEXT)
    assert "freeze_vision_tower" not in identity_part(text)["engine"]
    _, (problem,) = check_config({**text, "engine": {**text["engine"], "freeze_vision_tower": True}})
    assert problem.key == "engine.freeze_vision_tower"
