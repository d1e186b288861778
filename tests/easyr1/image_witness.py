"""Writes down which images EasyR1's workers give their models with each prompt. It changes nothing."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from verl.protocol import DataProto

FOLDER = "witness"
"""In the checkpoint folder; a file a rank, of one JSON object for each row that a model was given."""


def watched_trainer() -> type[Any]:
    """The plug-in's trainer, on workers that `watch` has been run in. Needs EasyR1 to be importable."""
    from fastrl.engines.easyr1.trainer import MethodTrainer
    from fastrl.engines.easyr1.worker_hooks import rank_call

    class WatchedTrainer(MethodTrainer):
        def init_workers(self) -> None:
            super().init_workers()
            folder = Path(self.config.trainer.save_checkpoint_path) / FOLDER
            folder.mkdir(exist_ok=True)
            workers = self.actor_rollout_ref_wg
            workers.execute_with_func_generator(watch, rank_call(workers.world_size, folder=str(folder)))

    return WatchedTrainer


def watch(worker: Any, call: DataProto) -> DataProto:
    """From now on the worker writes down what its models are given."""
    file = Path(call.meta_info["folder"]) / f"{worker.rank}-{os.getpid()}.jsonl"

    def write(stage: str, rows: Sequence[dict[str, Any]]) -> None:
        with file.open("a") as stream:
            stream.writelines(json.dumps({"stage": stage, **row}) + "\n" for row in rows)

    generate = worker.model.generate

    def watched_generate(**given: Any) -> Any:
        write("sample", _sampled_rows(worker.tokenizer, given))
        return generate(**given)

    worker.model.generate = watched_generate
    for name, score, train in (("actor", "old", "update"), ("ref_policy", "ref", "ref")):
        policy = getattr(worker, name, None)  # without KL there is no reference
        if policy is not None:
            policy._forward_micro_batch = _watched_forward(policy, worker.tokenizer, score, train, write)
    return call


def _watched_forward(policy: Any, tokenizer: Any, score: str, train: str, write: Any) -> Any:
    forward = policy._forward_micro_batch

    def watched(batch: dict[str, Any], temperature: float) -> torch.Tensor:
        log_probs: torch.Tensor = forward(batch, temperature=temperature)
        images = batch.get("multi_modal_inputs", [{}] * len(log_probs))
        width = batch["responses"].size(1)
        write(
            train if torch.is_grad_enabled() else score,
            [
                {
                    "prompt": _text(tokenizer, ids[:-width], mask[:-width]),
                    "images": fingerprint(seen),
                    "response": ids[-width:][mask[-width:] == 1].tolist(),
                    "log_probs": row[mask[-width:] == 1].tolist(),
                }
                for ids, mask, seen, row in zip(
                    batch["input_ids"], batch["attention_mask"], images, log_probs.detach(), strict=True
                )
            ],
        )
        return log_probs

    return watched


def _sampled_rows(tokenizer: Any, given: dict[str, Any]) -> list[dict[str, Any]]:
    """Generation gets the images of all prompts in one tensor: each takes as many as its text has."""
    start = tokenizer.convert_tokens_to_ids("<|vision_start|>")
    grids, first, rows = given.get("image_grid_thw", torch.zeros(0, 3)), 0, []
    patches = grids.prod(dim=1).long().cumsum(0).tolist()
    for ids, mask in zip(given["input_ids"], given["attention_mask"], strict=True):
        last = first + int((ids == start).sum())
        seen = {}
        if last > first:
            pixels = given["pixel_values"][patches[first - 1] if first else 0 : patches[last - 1]]
            seen = {"pixel_values": pixels, "image_grid_thw": grids[first:last]}
        rows.append({"prompt": _text(tokenizer, ids, mask), "images": fingerprint(seen)})
        first = last
    assert first == len(grids), f"{len(grids)} images for the {first} that the prompts have"
    return rows


def read_witness(checkpoints: Path) -> list[dict[str, Any]]:
    """The rows that were written down beside a run's checkpoints; none where nobody watched."""
    return [
        json.loads(line)
        for file in sorted((checkpoints / FOLDER).glob("*.jsonl"))
        for line in file.read_text().splitlines()
    ]


def read_questions(path: Path) -> dict[str, tuple[str, list[Any]]]:
    """By prompt, as the rows that were written have it: a question's text, and its images in RGB."""
    import io

    import pyarrow.parquet as pq
    from PIL import Image

    return {
        row["problem"].replace("<image>", "").strip(): (
            row["problem"],
            [Image.open(io.BytesIO(image["bytes"])).convert("RGB") for image in row["images"]],
        )
        for row in pq.read_table(path).to_pylist()
    }


def own_images(policy: Path, questions: Path) -> dict[str, str]:
    """By prompt: the fingerprint of what the policy's processor makes of the question's images."""
    from fastrl.engines.reference.qwen_processor import load_qwen_processor

    processor = load_qwen_processor(policy).image_processor
    return {
        prompt: fingerprint(dict(processor(images=images, return_tensors="pt")) if images else {})
        for prompt, (_, images) in read_questions(questions).items()
    }


def fingerprint(images: dict[str, torch.Tensor]) -> str:
    """Of a processor's tensors; "" for a question without images. Its start are the sides in patches."""
    if not images:
        return ""
    sides = "+".join(f"{height}x{width}" for _, height, width in images["image_grid_thw"].tolist())
    pixels = images["pixel_values"].to(torch.float32).contiguous().numpy()
    return f"{sides} {hashlib.sha256(pixels.tobytes()).hexdigest()[:16]}"


def _text(tokenizer: Any, ids: torch.Tensor, mask: torch.Tensor) -> str:
    return str(tokenizer.decode(ids[mask == 1], skip_special_tokens=True)).strip()
