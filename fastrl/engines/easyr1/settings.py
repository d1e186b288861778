"""What an EasyR1 engine config holds (`experiments/conf/engine/easyr1*.yaml`). Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

EASYR1_ENGINES = ("easyr1", "easyr1_cpu")
"""The engine configs that train on EasyR1."""


@dataclass(frozen=True)
class EasyR1Settings:
    """Where and how EasyR1 trains; values are in YAML, none has a default.

    worker: "gpu" is EasyR1's own FSDP worker with vLLM; "cpu" the stand-in of `cpu_worker`, for rehearsals.
    home: a checkout of EasyR1 to import, null where it is installed.
    nodes, gpus_per_node: the data-parallel ranks are their product.
    tensor_parallel, gpu_memory_utilization: vLLM's.
    micro_batch_update, micro_batch_experience: trajectories a device takes at once, in updates and in old and
        reference log-probs.
    dynamic_batching: micro-batches by tokens instead; padding_free, torch_compile, gradient_checkpointing,
        freeze_vision_tower, offload_params, offload_optimizer, offload_reference: EasyR1's switches.
    draw_questions: questions a draw (`mini_rollout_batch_size`), null for a whole step's.
    grpo_loss_average: of GRPO's loss, over all tokens ("token": EasyR1's default, and so the paper's runs) or
        over sequences ("sequence": the textbook's). Other objectives say themselves.
    sequence_mean: EasyR1 weighs micro-batches by tokens, also where the mean is over sequences ("easyr1");
        "exact" makes the mean over sequences independent of micro-batches.
    constant_groups: "zero" gives groups of constant reward advantages of exactly 0; "easyr1" leaves the up to
        0.1 that its rounding makes of them.
    clip_dual: bound on the ratio of negative advantages (dual-clip PPO).
    min_pixels, max_pixels: images are resized to between these, before the policy's own processor sees them.
    validation_temperature, validation_top_p: of the responses to validation questions.
    """

    worker: Literal["gpu", "cpu"]
    home: str | None
    nodes: int
    gpus_per_node: int
    tensor_parallel: int
    gpu_memory_utilization: float
    micro_batch_update: int
    micro_batch_experience: int
    dynamic_batching: bool
    padding_free: bool
    torch_compile: bool
    gradient_checkpointing: bool
    freeze_vision_tower: bool
    offload_params: bool
    offload_optimizer: bool
    offload_reference: bool
    draw_questions: int | None
    grpo_loss_average: Literal["token", "sequence"]
    sequence_mean: Literal["exact", "easyr1"]
    constant_groups: Literal["zero", "easyr1"]
    clip_dual: float
    min_pixels: int
    max_pixels: int
    validation_temperature: float
    validation_top_p: float

    def __post_init__(self) -> None:
        for name in (
            "nodes",
            "gpus_per_node",
            "tensor_parallel",
            "micro_batch_update",
            "micro_batch_experience",
        ):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)} must be at least 1")
        if self.data_parallel % self.tensor_parallel:
            raise ValueError(
                f"tensor_parallel={self.tensor_parallel} does not divide the {self.data_parallel} GPUs"
            )
        if not 0 < self.gpu_memory_utilization <= 1:
            raise ValueError(f"gpu_memory_utilization={self.gpu_memory_utilization} must be in (0, 1]")
        if self.draw_questions is not None and self.draw_questions < 1:
            raise ValueError(f"draw_questions={self.draw_questions} must be at least 1, or null")
        if not 0 < self.min_pixels <= self.max_pixels:
            raise ValueError(
                f"min_pixels={self.min_pixels} must be above 0, and max_pixels={self.max_pixels} not below it"
            )
        if not self.clip_dual > 1:
            raise ValueError(f"clip_dual={self.clip_dual} must be above 1")

    @property
    def data_parallel(self) -> int:
        """Ranks that every update divides over: all GPUs, the only axis of its FSDP workers."""
        return self.nodes * self.gpus_per_node


def easyr1_settings(engine: Mapping[str, Any]) -> EasyR1Settings:
    """From the `engine` part of a resolved config; its `name` is left out. ValueError on other keys."""
    values = {key: value for key, value in engine.items() if key != "name"}
    known = {field.name for field in fields(EasyR1Settings)}
    if values.keys() != known:
        odd = sorted(values.keys() ^ known)
        raise ValueError(f"engine.{odd[0]} is {'unknown' if odd[0] in values else 'missing'} for easyr1")
    return EasyR1Settings(**values)
