"""A resolved config as EasyR1's own: which of its keys each of ours becomes, and what it can't do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastrl.engines.easyr1.batch_problems import batch_problems, initial_rollouts
from fastrl.engines.easyr1.settings import EasyR1Settings, easyr1_settings

LOSSES = {
    "grpo": {"loss_type": "default", "loss_avg_mode": "seq"},
    "dapo": {"loss_type": "default", "loss_avg_mode": "token"},
    "gspo": {"loss_type": "gspo_token", "loss_avg_mode": "seq"},
    "gspo_token": {"loss_type": "gspo_token", "loss_avg_mode": "seq"},
}
"""Our objectives in EasyR1's words."""

ACCURACY_BOUNDS = {"filter_low": 0.01, "filter_high": 0.99}
"""A group's mean accuracy must lie between these for DAPO's filter: neither all wrong nor all right."""


_REFUSING = ("dynamic_sampling", "greso", "greso_absolute")
"""Prompt filters that refuse groups of one accuracy, and so EasyR1's online filtering."""


@dataclass(frozen=True)
class RunFiles:
    """Where a run's training reads and writes; absolute paths, on a file system that all nodes share.

    train, validation: JSONL or parquet with `problem`, `answer`, `question_id` and, for images, `images`.
    format_prompt: a Jinja template around the problem, or None. chat_template: one instead of the tokenizer's
    own, or None. reward: a reward file of `compute_score`, with its arguments.
    """

    policy: str
    train: str
    validation: str
    format_prompt: str | None
    chat_template: str | None
    reward: str
    reward_arguments: Mapping[str, Any]
    checkpoints: str


def easyr1_config(config: Mapping[str, Any], files: RunFiles) -> dict[str, Any]:
    """The keys of EasyR1's `PPOConfig` that a cell sets, nested; the others keep EasyR1's defaults.

    config: a resolved cell with engine `easyr1`, one that `easyr1_problems` finds nothing wrong with.
    """
    method, training = config["method"], config["training"]
    engine, objective = easyr1_settings(config["engine"]), config["method"]["objective"]
    refills = _refills(method)
    no_kl = objective["kl_coef"] == 0
    return {
        "data": {
            "train_files": files.train,
            "val_files": files.validation,
            "prompt_key": "problem",
            "answer_key": "answer",
            "image_key": "images",
            "format_prompt": files.format_prompt,
            "override_chat_template": files.chat_template,
            "max_prompt_length": training["max_prompt_tokens"],
            "max_response_length": training["max_response_tokens"],
            "rollout_batch_size": training["questions_per_step"],
            "mini_rollout_batch_size": engine.draw_questions,
            "val_batch_size": -1 if engine.worker == "cpu" else 1024,
            "shuffle": True,
            "seed": config["seed"],
            "min_pixels": engine.min_pixels,
            "max_pixels": engine.max_pixels,
            "filter_overlong_prompts_workers": 1 if engine.worker == "cpu" else 16,
        },
        "algorithm": {
            "adv_estimator": "grpo",
            "disable_kl": no_kl,
            "use_kl_loss": not no_kl,
            "kl_penalty": "low_var_kl",
            "kl_coef": objective["kl_coef"],
            "online_filtering": refills is not None,
            "filter_key": "accuracy",
            **ACCURACY_BOUNDS,
        },
        "worker": {
            "actor": {
                "global_batch_size": training["questions_per_step"] // training["updates"],
                "micro_batch_size_per_device_for_update": engine.micro_batch_update,
                "micro_batch_size_per_device_for_experience": engine.micro_batch_experience,
                "max_grad_norm": training["max_grad_norm"],
                "clip_ratio_low": objective["clip_low"],
                "clip_ratio_high": objective["clip_high"],
                "clip_ratio_dual": engine.clip_dual,
                **_loss(method, engine),
                "ppo_epochs": 1,
                "padding_free": engine.padding_free,
                "dynamic_batching": engine.dynamic_batching,
                "use_torch_compile": engine.torch_compile,
                "model": {
                    "model_path": files.policy,
                    "enable_gradient_checkpointing": engine.gradient_checkpointing,
                    "trust_remote_code": False,
                    "freeze_vision_tower": engine.freeze_vision_tower,
                },
                "optim": {
                    "lr": training["learning_rate"],
                    "betas": list(training["betas"]),
                    "weight_decay": training["weight_decay"],
                    "lr_warmup_steps": training["warmup_steps"],
                    "lr_scheduler_type": "constant",
                },
                "offload": {
                    "offload_params": engine.offload_params,
                    "offload_optimizer": engine.offload_optimizer,
                },
            },
            "ref": {"fsdp": {"enable_cpu_offload": engine.offload_reference}},
            "rollout": {
                "n": initial_rollouts(method),
                "temperature": training["temperature"],
                "seed": config["seed"],
                "tensor_parallel_size": engine.tensor_parallel,
                "gpu_memory_utilization": engine.gpu_memory_utilization,
                "val_override_config": {
                    "temperature": engine.validation_temperature,
                    "top_p": engine.validation_top_p,
                    "n": training["validation_samples"],
                },
            },
            "reward": {
                "reward_function": f"{files.reward}:compute_score",
                "reward_function_kwargs": dict(files.reward_arguments),
            },
        },
        "trainer": {
            "total_epochs": training["epochs"],
            "project_name": "fastrl",
            "experiment_name": f"{method['name']}-s{config['seed']}",
            "logger": ["file", "fastrl"],
            "nnodes": engine.nodes,
            "n_gpus_per_node": engine.gpus_per_node,
            "max_try_make_batch": -1 if refills is None else refills,
            "val_freq": training["validate_every"] or -1,
            "val_before_train": training["validate_every"] > 0,
            "save_freq": training["checkpoint_every"] or -1,
            "save_limit": training["keep_checkpoints"],
            "save_checkpoint_path": files.checkpoints,
            "find_last_checkpoint": True,
        },
    }


def easyr1_problems(config: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """What EasyR1 can't do of a config: (key, what, way out) each; empty when it can train it."""
    method, training = config["method"], config["training"]
    objective = method["objective"]["name"]
    problems = []
    if objective not in LOSSES:
        problems.append(
            (
                "method.objective.name",
                f"method.objective.name={objective} has no counterpart in EasyR1, whose losses are means "
                "over tokens or sequences",
                f"use one of {', '.join(LOSSES)}, or engine=reference",
            )
        )
    if method["selector"].get("allocation"):
        problems.append(
            (
                "method.selector.allocation",
                "method.selector.allocation=true plans more questions a step than EasyR1 draws",
                "use false, or engine=reference",
            )
        )
    if training["questions_per_step"] % training["updates"]:
        problems.append(
            (
                "training.updates",
                f"training.updates={training['updates']} does not divide training.questions_per_step="
                f"{training['questions_per_step']}; EasyR1 sizes its mini-batches in questions",
                "use a divisor",
            )
        )
    if not problems:
        problems += batch_problems(config)
    if training["on_bad_reward"] != "error":
        problems.append(
            (
                "training.on_bad_reward",
                "training.on_bad_reward=drop: EasyR1 needs groups of equal size until pruning",
                "use error",
            )
        )
    return problems


def averages_sequences(config: Mapping[str, Any]) -> bool:
    """Whether a cell's loss is a mean over sequences, so that `engine.sequence_mean` matters."""
    return _loss(config["method"], easyr1_settings(config["engine"]))["loss_avg_mode"] == "seq"


def _loss(method: Mapping[str, Any], engine: EasyR1Settings) -> dict[str, str]:
    """What the actor's config says of a method's loss."""
    name = method["objective"]["name"]
    if name == "grpo" and engine.grpo_loss_average == "token":
        return {**LOSSES[name], "loss_avg_mode": "token"}
    return LOSSES[name]


def _refills(method: Mapping[str, Any]) -> int | None:
    """The draws that a filter which refuses groups may make, None for one that takes every group."""
    prompts = method["prompts"]
    return int(prompts["max_draws"]) if prompts["name"] in _REFUSING else None
