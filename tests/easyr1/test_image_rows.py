"""Whatever a method prunes, reorders or refills, each trajectory meets the images of its own question."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from image_witness import own_images, read_questions
from tiny_assets import Assets
from tiny_cells import cell
from tiny_vision_assets import SEEING
from training import Trained, train_cell

pytestmark = [pytest.mark.easyr1, pytest.mark.slow]

CELLS: dict[str, dict[str, Any]] = {
    "fastrl": {"rollouts": "ars", "selector": "mdap"},
    "fastrl after log-probs": {"rollouts": "ars", "selector": "mdap", "prune": "after_logprob"},
    "cppo": {"selector": "cppo", "parts": {"selector": {"pruning_rate": 0.5}}},
    "dapo": {"objective": "dapo", "prompts": "dynamic_sampling"},
    "greso": {"prompts": "greso", "selector": "mdap"},
}


@pytest.fixture(scope="module", params=CELLS)
def trained(
    request: pytest.FixtureRequest, vision_assets: Assets, tmp_path_factory: pytest.TempPathFactory
) -> Trained:
    config = cell(**CELLS[request.param], training=SEEING)
    return train_cell(tmp_path_factory.mktemp("trained"), vision_assets, config, watch_images=True)


def test_a_method_trains_on_images_and_its_record_is_finite(trained: Trained) -> None:
    assert [record["step"] for record in trained.steps] == [1, 2, 3, 4, 5, 6]
    for record in trained.steps:
        assert all(math.isfinite(value) for value in record.values() if isinstance(value, float))
        assert record["actor/grad_norm"] > 0
        assert record["rollout/accepted"] == 8
        assert record["select/kept_aligned"] % 4 == 0  # two updates of micro-batches of two


def test_each_trajectory_meets_its_own_questions_images(trained: Trained, vision_assets: Assets) -> None:
    own = own_images(vision_assets.policy, vision_assets.train)
    assert len(set(own.values())) == 22  # three have none
    stages = [row["stage"] for row in trained.seen]
    assert {"sample", "old", "update"} <= set(stages)
    assert stages.count("update") == sum(record["select/kept_aligned"] for record in trained.steps)
    for row in trained.seen:
        assert row["images"] == own[row["prompt"]], row


def test_old_log_probs_are_those_that_transformers_gives_to_prompt_and_images(
    trained: Trained, vision_assets: Assets
) -> None:
    """Of the first step, before any update: each trajectory alone, with positions by transformers' model."""
    import torch
    from transformers import Qwen2_5_VLForConditionalGeneration

    from fastrl.engines.reference.qwen_processor import load_qwen_processor

    processor = load_qwen_processor(vision_assets.policy)
    model = Qwen2_5_VLForConditionalGeneration.from_pretrained(
        vision_assets.policy, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    count = int(trained.steps[0]["select/kept_aligned"])
    rows = [row for row in trained.seen if row["stage"] == "old"][:count]
    questions, blind = read_questions(vision_assets.train), 0.0
    for row in rows:
        text, images = questions[row["prompt"]]
        expected = log_probs(model, processor, text, images, row["response"])
        assert row["log_probs"] == pytest.approx(expected, abs=1e-4)
        if images:
            white = [image.point(lambda _: 255) for image in images]
            other = log_probs(model, processor, text, white, row["response"])
            blind = max(blind, *(abs(one - two) for one, two in zip(expected, other, strict=True)))
    assert blind > 0.01  # the comparison would notice other images


def log_probs(model: Any, processor: Any, text: str, images: list[Any], response: list[int]) -> list[float]:
    import torch

    parts = [
        {"type": "image"} if part == "<image>" else {"type": "text", "text": part}
        for part in re.split("(<image>)", text)
        if part
    ]
    chat = processor.apply_chat_template(
        [{"role": "user", "content": parts}], add_generation_prompt=True, tokenize=False
    )
    inputs = dict(processor(images or None, [chat], add_special_tokens=False, return_tensors="pt"))
    prompt = inputs.pop("input_ids")
    positions, _ = model.model.get_rope_index(prompt, image_grid_thw=inputs.get("image_grid_thw"))
    # A response is text, whatever tokens were sampled: its positions count on.
    ahead = positions[..., -1:] + torch.arange(1, len(response) + 1)
    ids = torch.cat([prompt, torch.tensor([response])], dim=1)
    inputs["attention_mask"] = torch.ones_like(ids)
    inputs["position_ids"] = torch.cat([positions, ahead], dim=-1)
    with torch.no_grad():
        logits = model(input_ids=ids, **inputs).logits[0, -len(response) - 1 : -1]
    chosen = logits.log_softmax(-1).gather(1, torch.tensor(response).unsqueeze(1))
    values: list[float] = chosen.squeeze(1).tolist()
    return values
