"""Resolved configs of tiny cells on EasyR1's CPU worker, from the project's YAML files; needs no Hydra."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_CONF = Path(__file__).parents[2] / "experiments" / "conf"

TRAINING = {
    "name": "tiny",
    "epochs": 2,
    "questions_per_step": 8,
    "max_prompt_tokens": 12,
    "max_response_tokens": 10,
    "temperature": 1.0,
    "learning_rate": 3e-3,
    "betas": [0.9, 0.999],
    "weight_decay": 0.01,
    "max_grad_norm": 1.0,
    "warmup_steps": 0,
    "updates": 2,
    "update_mode": "fixed",
    "validate_every": 0,
    "validation_samples": 1,
    "checkpoint_every": 0,
    "keep_checkpoints": 3,
    "record_rollouts_every": 0,
    "on_bad_reward": "error",
}


def cell(
    objective: str = "grpo",
    prompts: str = "all",
    rollouts: str = "fixed",
    selector: str = "all",
    prune: str = "before_logprob",
    parts: dict[str, dict[str, Any]] | None = None,
    training: dict[str, Any] | None = None,
    engine: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """A cell of 24 questions, 8 a step and 4 rollouts each: 3 steps an epoch.

    parts: changed fields by part of the method; training, engine: changed fields.
    """
    changed = {"rollouts": {"n": 4}, **(parts or {})}
    chosen = {"objective": objective, "prompts": prompts, "rollouts": rollouts, "selector": selector}
    method: dict[str, Any] = {"name": "tiny", "label": "Tiny", "prune": prune}
    for part, name in chosen.items():
        method[part] = {**_yaml(f"method/{part}/{name}"), **changed.get(part, {})}
        if method[part].get("tau") == "${fastrl.tau}":
            method[part]["tau"] = 0.8
    return {
        "seed": 0,
        "method": method,
        "training": {**TRAINING, **(training or {})},
        "engine": {
            **_yaml("engine/memory/h20_96gb"),
            **_yaml("engine/easyr1"),
            **_yaml("engine/easyr1_cpu"),
            "micro_batch_update": 2,
            "micro_batch_experience": 2,
            **(engine or {}),
        },
    }


def ragged_cell(**training: Any) -> dict[str, Any]:
    """Three epochs of all that makes batches ragged and has state to resume: ARS, GRESO and MDAP."""
    return cell(
        prompts="greso",
        rollouts="ars",
        selector="mdap",
        parts={"rollouts": {"n": 4}, "selector": {"tau": 0.9}},
        training={"epochs": 3, "checkpoint_every": 2, **training},
    )


def _yaml(name: str) -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load((_CONF / f"{name}.yaml").read_text(encoding="utf-8"))
    values.pop("defaults", None)
    return values
