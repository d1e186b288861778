"""EasyR1's log of a step as our step record: stages that add up, nothing counted in the wrong one.

Standard library only: logs can be read where EasyR1 is not installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OWN = "fastrl/"
"""Prefix of what the plug-in reports through EasyR1's metrics, plain floats all."""

_STAGES = ("gen", "reward", "adv", "select", "old", "ref", "update_actor")


def flat(metrics: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested metrics, as EasyR1's `experiment_log.jsonl` has them, with keys joined by "/"."""
    found: dict[str, Any] = {}
    for key, value in metrics.items():
        if isinstance(value, Mapping):
            found.update(flat(value, f"{prefix}{key}/"))
        else:
            found[prefix + key] = value
    return found


def is_step(metrics: Mapping[str, Any]) -> bool:
    """False for the log of a validation alone, before the first step or after the last."""
    return "timing_s/step" in metrics


def validation_record(metrics: Mapping[str, Any], step: int, time: float) -> dict[str, Any]:
    """The record of a validation without a step."""
    return {"step": step, "time": time, **_validation(metrics)}


def step_record(metrics: Mapping[str, Any], step: int, time: float) -> dict[str, Any]:
    """The record of one step, from flat metrics that `MethodTrainer` logged.

    In EasyR1's timings the wait for rewards is part of `gen` (with online filtering) or of no stage, pruning
    is in none, and `step` holds validation and checkpoints too. Here each stage has its own seconds, `step`
    is the sum of the work, and `save_checkpoint` is the saving of the checkpoint before this step, which
    happens where EasyR1 measures `gen`.
    Raises KeyError naming a metric that is missing.
    """
    own = {key.removeprefix(OWN): value for key, value in metrics.items() if key.startswith(OWN)}
    timing = {
        "gen": metrics["timing_s/gen"]
        - own["save_seconds"]
        - (own["reward_seconds"] if own["refilled"] else 0.0),
        "reward": own["reward_seconds"],
        "adv": own["adv_seconds"] + metrics["timing_s/adv"],
        "select": own["select_seconds"],
        "old": metrics["timing_s/old"],
        "ref": metrics.get("timing_s/ref", 0.0),
        "update_actor": metrics["timing_s/update_actor"],
    }
    return {
        "step": step,
        "epoch": int(own["epoch"]),
        "time": time,
        **{f"timing_s/{stage}": timing[stage] for stage in _STAGES},
        "timing_s/step": sum(timing.values()),
        "timing_s/validation": metrics.get("timing_s/validation", 0.0),
        "timing_s/save_checkpoint": own["save_seconds"],
        "rollout/n": int(own["n"]),
        "rollout/questions": int(own["questions"]),
        "rollout/skipped": int(own["skipped"]),
        "rollout/trajectories": int(own["trajectories"]),
        "rollout/tokens": int(own["tokens"]),
        "rollout/draws": int(own["draws"]),
        "rollout/accepted": int(own["accepted"]),
        "select/kept": int(own["kept"]),
        "select/kept_aligned": int(own["kept_aligned"]),
        "select/kept_per_question_mean": own["kept_per_question_mean"],
        "select/kept_per_question_max": int(own["kept_per_question_max"]),
        "select/zero_variance": own["zero_variance"],
        "reward/mean": own["reward_mean"],
        "reward/accuracy": metrics["reward/accuracy"],
        "reward/format": metrics["reward/format"],
        "reward/dropped": 0,
        "actor/loss": metrics["actor/pg_loss"],
        "actor/entropy": metrics["actor/entropy_loss"],
        "actor/kl": metrics.get("actor/kl_loss"),
        "actor/clipfrac": metrics["actor/pg_clipfrac_higher"] + metrics["actor/pg_clipfrac_lower"],
        "actor/grad_norm": metrics["actor/grad_norm"],
        "actor/updates": int(own["updates"]),
        "actor/lr": metrics["actor/lr"],
        "tokens/generated": int(own["tokens"]),
        "tokens/trained": int(own["trained_tokens"]),
        "tokens/total": int(own["tokens"] + own["trained_tokens"] + own["scored_tokens"]),
        **_validation(metrics),
    }


def _validation(metrics: Mapping[str, Any]) -> dict[str, float]:
    accuracy = metrics.get("val/accuracy_reward")
    return {} if accuracy is None else {"val/accuracy": float(accuracy)}
