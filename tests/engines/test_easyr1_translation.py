"""Cells as EasyR1's own config: the paper's setup key by key, and what EasyR1 can't do."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.compose import compose_cell
from experiments.errors import UserError
from fastrl.engines.easyr1.step_records import flat
from fastrl.engines.easyr1.translation import RunFiles, averages_sequences, easyr1_config

FILES = RunFiles(
    policy="policy",
    train="train.parquet",
    validation="test.parquet",
    format_prompt=None,
    chat_template=None,
    reward="reward.py",
    reward_arguments={"format_weight": 0.5},
    checkpoints="checkpoints",
)
PAPER = ["engine=easyr1", "dataset=geometry3k", "model=qwen2_5_vl_7b", "training=paper_geometry3k"]

ONE_SIZE = ["engine.dynamic_batching=false"]
"""Micro-batches of so many trajectories, and not of so many tokens."""


def translated(*overrides: str) -> dict[str, Any]:
    return flat(easyr1_config(compose_cell(overrides), FILES))


def test_the_published_setup_has_its_place() -> None:
    config = translated(*PAPER, "method=grpo")
    published = {
        "worker/actor/optim/lr": 1e-6,
        "worker/actor/optim/weight_decay": 1e-2,
        "algorithm/kl_coef": 1e-2,
        "algorithm/use_kl_loss": True,
        "algorithm/kl_penalty": "low_var_kl",
        "algorithm/adv_estimator": "grpo",
        "worker/rollout/n": 8,
        "data/rollout_batch_size": 256,
        "worker/actor/global_batch_size": 16,
        "worker/actor/loss_avg_mode": "token",
        "data/max_prompt_length": 2048,
        "data/max_response_length": 2048,
        "trainer/total_epochs": 25,
        "trainer/n_gpus_per_node": 4,
        "trainer/nnodes": 1,
    }
    assert {key: config[key] for key in published} == published
    assert compose_cell([*PAPER, "method=fastrl"])["method"]["selector"]["tau"] == 0.8


@pytest.mark.parametrize(
    ("words", "key", "value"),
    [
        (["dataset=geoqa8k_r1v", "training=paper_geoqa8k_r1v"], "trainer/total_epochs", 15),
        (["dataset=math", "training=paper_math"], "trainer/total_epochs", 3),
        (["training.max_response_tokens=4096"], "data/max_response_length", 4096),
        (["training.updates=4"], "worker/actor/global_batch_size", 64),  # low policy lag
        (["engine.gpus_per_node=8"], "trainer/n_gpus_per_node", 8),
        (["method=dapo"], "worker/actor/clip_ratio_high", 0.28),
        (["method=dapo"], "algorithm/online_filtering", True),
        (["method=dapo"], "algorithm/filter_key", "accuracy"),
        (["method=dapo"], "algorithm/disable_kl", True),
        (["method=dapo"], "trainer/max_try_make_batch", 20),
        (["method=gspo"], "worker/actor/loss_type", "gspo_token"),
        (["method=gspo"], "worker/actor/loss_avg_mode", "seq"),
        (["method=greso"], "algorithm/online_filtering", True),
        (["method=fastrl"], "algorithm/online_filtering", False),
        (["engine.grpo_loss_average=sequence"], "worker/actor/loss_avg_mode", "seq"),
        ([], "data/image_key", "images"),
        (["engine.min_pixels=784"], "data/min_pixels", 784),
        (["engine.max_pixels=1003520"], "data/max_pixels", 1003520),
        (["engine.freeze_vision_tower=true"], "worker/actor/model/freeze_vision_tower", True),
    ],
)
def test_a_setting_becomes_easyr1s(words: list[str], key: str, value: object) -> None:
    assert translated(*PAPER, *words)[key] == value


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["method=dr_grpo"], "method.objective.name=dr_grpo has no counterpart in EasyR1"),
        (["training.updates=7", "training.update_mode=fixed"], "training.updates=7 does not divide"),
        (["training.on_bad_reward=drop"], "groups of equal size"),
        (["method=cppo", "method.selector.allocation=true"], "plans more questions"),
        (["engine.micro_batch_update=3"], "does not divide the 128 trajectories of an update"),
        (["engine.tensor_parallel=3"], "does not divide the 4 GPUs"),
        (["engine.max_pixels=784"], "max_pixels=784 not below it"),
        (["engine.gpus_per_node=6"], "does not divide over the engine's 6 ranks"),
        (["engine.nodes=64"], "the engine's 256 ranks do not divide the 128 trajectories of an update"),
        (["engine.draw_questions=6"], "draw_questions=6 does not divide over the engine's 4 ranks"),
        (["engine.micro_batch_experience=7"], "does not divide the 2048 trajectories of a step"),
        (
            ["method=fastrl", "method.prune=after_logprob", "engine.gpus_per_node=32", *ONE_SIZE],
            "micro_batch_experience=16 does not divide the 24 trajectories of a rank, 3 a question",
        ),
        (
            [
                "method=fastrl",
                "engine.gpus_per_node=16",
                "engine.micro_batch_update=8",
                "training.update_mode=fixed",
                *ONE_SIZE,
            ],
            "train in multiples of 2048 trajectories, and a step may sample only 512 (2 a question)",
        ),
    ],
)
def test_what_easyr1_cannot_do_is_refused_at_composition(words: list[str], what: str) -> None:
    with pytest.raises(UserError) as refused:
        compose_cell([*PAPER, *words])
    assert what in str(refused.value)


@pytest.mark.parametrize(
    ("gpu", "tensor_parallel", "utilization", "update", "experience"),
    [
        ("h20_96gb", 1, 0.6, 4, 16),
        ("h100_80gb", 1, 0.6, 2, 8),
        ("a100_80gb", 1, 0.6, 2, 8),
        ("a100_40gb", 2, 0.5, 1, 4),
        ("rtx_24gb", 4, 0.5, 1, 2),
    ],
)
def test_what_depends_on_a_gpus_memory_is_one_choice(
    gpu: str, tensor_parallel: int, utilization: float, update: int, experience: int
) -> None:
    config = translated(*PAPER, f"engine/memory={gpu}", "engine.gpus_per_node=8")
    assert config["worker/rollout/tensor_parallel_size"] == tensor_parallel
    assert config["worker/rollout/gpu_memory_utilization"] == utilization
    assert config["worker/actor/micro_batch_size_per_device_for_update"] == update
    assert config["worker/actor/micro_batch_size_per_device_for_experience"] == experience
    assert config["worker/actor/offload/offload_params"] is True
    assert config["worker/actor/offload/offload_optimizer"] is True
    assert config["worker/ref/fsdp/enable_cpu_offload"] is True


def test_sequence_means_matter_where_the_loss_is_one() -> None:
    assert averages_sequences(compose_cell([*PAPER, "method=gspo"]))
    assert not averages_sequences(compose_cell([*PAPER, "method=grpo"]))
    assert averages_sequences(compose_cell([*PAPER, "method=grpo", "engine.grpo_loss_average=sequence"]))
