"""EasyR1's actor on CPUs, to rehearse a run on a laptop: its own dispatch, losses, micro-batches and caches.

What needs a GPU there is done here in another way: the model is not sharded (DDP over gloo), and responses
come from transformers' `generate` instead of vLLM's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
import torch.distributed as dist
from tensordict import TensorDict
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText
from transformers.modeling_outputs import CausalLMOutput
from verl.models.monkey_patch import QWEN2_VL_MODELS
from verl.models.transformers.qwen2_vl import qwen2_vl_base_forward
from verl.protocol import DataProto
from verl.single_controller.base import Worker
from verl.single_controller.base.decorator import Dispatch, register
from verl.utils import torch_functional
from verl.utils.tokenizer import get_tokenizer
from verl.workers.actor.dp_actor import DataParallelPPOActor
from verl.workers.fsdp_workers import FSDPWorker

from fastrl.engines.easyr1.cpu_processor import cpu_processor


class CpuWorkerBase(Worker):  # type: ignore[misc]
    """EasyR1 subclasses a worker's base class and calls it without arguments, so it is one of its own."""

    def __init__(self, cuda_visible_devices: str | None = None) -> None:
        with patch("torch.cuda.get_device_name", lambda *_: "cpu"):  # asked for unconditionally
            super().__init__(cuda_visible_devices)


class CpuWorker(CpuWorkerBase):
    """Actor, rollout and reference in one, with the methods that EasyR1's trainer calls."""

    _process_multi_modal_inputs = FSDPWorker._process_multi_modal_inputs

    def __init__(self, config: Any, role: str) -> None:
        super().__init__()
        torch.set_num_threads(1)
        self.config, self.role = config, role
        self._cache: dict[str, Any] = {}
        if not dist.is_initialized():
            dist.init_process_group("gloo", rank=self.rank, world_size=self.world_size)
        actor = config.actor
        actor.global_batch_size *= config.rollout.n
        actor.global_batch_size_per_device = actor.global_batch_size // self.world_size

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)  # type: ignore[untyped-decorator]
    def init_model(self) -> None:
        path = self.config.actor.model.model_path
        self.tokenizer = get_tokenizer(self.config.actor.model.tokenizer_path, use_fast=True)
        self.processor = cpu_processor(path, None)
        self.model = _load(path)
        if self.config.actor.model.freeze_vision_tower and hasattr(self.model.model, "visual"):
            self.model.model.visual.requires_grad_(False)
        scored = _scored(self.model)
        module = DistributedDataParallel(scored) if self.world_size > 1 else scored
        optim = self.config.actor.optim
        trained = [weights for weights in self.model.parameters() if weights.requires_grad]
        self.optimizer = torch.optim.AdamW(
            trained, lr=optim.lr, betas=tuple(optim.betas), weight_decay=optim.weight_decay
        )
        self.lr_scheduler = torch_functional.get_constant_schedule_with_warmup(
            self.optimizer, num_warmup_steps=optim.lr_warmup_steps or 0
        )
        self.actor = DataParallelPPOActor(self.config.actor, module, self.optimizer)
        if not self.config.actor.disable_kl:
            reference = _scored(_load(path).requires_grad_(False))
            self.ref_policy = DataParallelPPOActor(self.config.ref, reference)
        torch.manual_seed(1000 * self.config.rollout.seed + self.rank)

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)  # type: ignore[untyped-decorator]
    def prepare_rollout_engine(self) -> None: ...

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)  # type: ignore[untyped-decorator]
    def release_rollout_engine(self) -> None: ...

    @register(dispatch_mode=Dispatch.DP_COMPUTE_PROTO)  # type: ignore[untyped-decorator]
    @torch.no_grad()
    def generate_sequences(self, prompts: DataProto) -> DataProto:
        """n responses a prompt; `meta_info` may set n and temperature for one call, as with vLLM's worker."""
        rollout, meta = self.config.rollout, prompts.meta_info
        n, temperature = meta.get("n", rollout.n), meta.get("temperature", rollout.temperature)
        eos, pad = self.tokenizer.eos_token_id, self.tokenizer.pad_token_id
        images = self._images_of(prompts)
        self.model.eval()
        sampling = {"do_sample": True, "temperature": temperature, "top_k": 0, "top_p": 1.0}
        output = self.model.generate(
            input_ids=prompts.batch["input_ids"],
            attention_mask=prompts.batch["attention_mask"],
            **images,
            **(sampling if temperature > 0 else {"do_sample": False}),
            num_return_sequences=n,
            max_new_tokens=rollout.response_length,
            eos_token_id=eos,
            pad_token_id=pad,
            suppress_tokens=self._never_sampled(),
        )
        ids, attention, positions = (
            prompts.batch[key].repeat_interleave(n, dim=0)
            for key in ("input_ids", "attention_mask", "position_ids")
        )
        responses = nn.functional.pad(
            output[:, ids.size(1) :], (0, rollout.response_length + ids.size(1) - output.size(1)), value=pad
        )
        mask = torch_functional.get_response_mask(responses, eos_token_id=eos, dtype=attention.dtype)
        ahead = torch.arange(1, responses.size(1) + 1)
        batch = TensorDict(
            {
                "prompts": ids,
                "responses": responses,
                "input_ids": torch.cat([ids, responses], dim=1),
                "attention_mask": torch.cat([attention, mask], dim=1),
                "response_mask": mask,
                "position_ids": torch.cat([positions, positions[..., -1:] + ahead], dim=-1),
            },
            batch_size=len(ids),
        )
        kept = {}
        if "multi_modal_data" in prompts.non_tensor_batch:
            kept["multi_modal_data"] = np.repeat(prompts.non_tensor_batch["multi_modal_data"], n)
        return DataProto(batch=batch, non_tensor_batch=kept, meta_info=meta)

    @register(dispatch_mode=Dispatch.DP_COMPUTE_PROTO)  # type: ignore[untyped-decorator]
    def compute_log_probs(self, data: DataProto) -> DataProto:
        self._process_multi_modal_inputs(data)
        data.meta_info["temperature"] = self.config.rollout.temperature
        return DataProto.from_dict(
            {"old_log_probs": self.actor.compute_log_prob(data)},
            meta_info={"temperature": self.config.rollout.temperature},
        )

    @register(dispatch_mode=Dispatch.DP_COMPUTE_PROTO)  # type: ignore[untyped-decorator]
    def compute_ref_log_probs(self, data: DataProto) -> DataProto:
        self._process_multi_modal_inputs(data)
        data.meta_info["temperature"] = self.config.rollout.temperature
        return DataProto.from_dict({"ref_log_probs": self.ref_policy.compute_log_prob(data)})

    @register(dispatch_mode=Dispatch.DP_COMPUTE_PROTO)  # type: ignore[untyped-decorator]
    def update_actor(self, data: DataProto) -> DataProto:
        self._process_multi_modal_inputs(data)
        metrics = self.actor.update_policy(data)
        metrics["actor/lr"] = self.lr_scheduler.get_last_lr()[0]
        self.lr_scheduler.step()
        return DataProto(
            non_tensor_batch={
                key: np.array([value] if np.isscalar(value) else value) for key, value in metrics.items()
            }
        )

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)  # type: ignore[untyped-decorator]
    def save_checkpoint(self, path: str, save_model_only: bool = False) -> None:
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        if self.rank == 0:
            self.model.save_pretrained(folder / "huggingface")
            (self.processor or self.tokenizer).save_pretrained(folder / "huggingface")
            state = {"optimizer": self.optimizer.state_dict(), "schedule": self.lr_scheduler.state_dict()}
            torch.save({"model": self.model.state_dict(), **state}, folder / "cpu_state.pt")
        torch.save(torch.get_rng_state(), folder / f"random_state_{self.rank}.pt")
        dist.barrier()

    @register(dispatch_mode=Dispatch.ONE_TO_ALL)  # type: ignore[untyped-decorator]
    def load_checkpoint(self, path: str) -> None:
        folder = Path(path)
        state = torch.load(folder / "cpu_state.pt", weights_only=True)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.lr_scheduler.load_state_dict(state["schedule"])
        torch.set_rng_state(torch.load(folder / f"random_state_{self.rank}.pt", weights_only=True))
        dist.barrier()

    def _never_sampled(self) -> list[int] | None:
        """The token of a piece of an image, which EasyR1 keeps vLLM from too: a response has no image."""
        token = getattr(self.processor, "image_token", None)
        return None if token is None else [self.tokenizer.convert_tokens_to_ids(token)]

    def _images_of(self, prompts: DataProto) -> dict[str, torch.Tensor]:
        """The image features of a batch of prompts, as the model takes them; {} for text."""
        if "multi_modal_data" not in prompts.non_tensor_batch:
            return {}
        data = DataProto(
            batch=prompts.batch,
            non_tensor_batch={
                "uid": np.array([str(index) for index in range(len(prompts))], dtype=object),
                "multi_modal_data": prompts.non_tensor_batch["multi_modal_data"],
            },
            meta_info=prompts.meta_info,
        )
        cache, self._cache = self._cache, {}  # which knows nothing of generation on GPUs either
        self._process_multi_modal_inputs(data)
        self._cache = cache
        inputs = [each for each in data.non_tensor_batch["multi_modal_inputs"] if each]
        return {key: torch.cat([each[key] for each in inputs]) for key in inputs[0]} if inputs else {}


class _EasyR1Forward(nn.Module):
    """Log-probs and updates of a Qwen2-VL or Qwen2.5-VL go through the forward that EasyR1 gives it on GPUs.

    It takes batches of questions without images too, and is no good for generation.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, **inputs: Any) -> CausalLMOutput:
        hidden = qwen2_vl_base_forward(self.model.model, **inputs)[0]
        return CausalLMOutput(logits=self.model.lm_head(hidden))


def _load(path: str) -> Any:
    """The policy in float32 with the attention whose results do not depend on padding."""
    config = AutoConfig.from_pretrained(path)
    kind = AutoModelForImageTextToText if hasattr(config, "vision_config") else AutoModelForCausalLM
    return kind.from_pretrained(path, torch_dtype=torch.float32, attn_implementation="eager")


def _scored(model: Any) -> nn.Module:
    """What EasyR1's actor calls of a policy."""
    scored: nn.Module = _EasyR1Forward(model) if model.config.model_type in QWEN2_VL_MODELS else model
    return scored
