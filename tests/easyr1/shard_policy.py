"""Save a policy as EasyR1's FSDP workers do: `python shard_policy.py POLICY ACTOR`, one process a rank.

EasyR1's own checkpoint manager writes the shards, over gloo instead of nccl.
"""

from __future__ import annotations

import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel
from transformers import AutoModelForCausalLM, AutoTokenizer
from verl.utils.checkpoint.fsdp_checkpoint_manager import FSDPCheckpointManager


def main(policy: str, actor: str) -> None:
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("fsdp",))
    model = AutoModelForCausalLM.from_pretrained(policy, torch_dtype=torch.float32)
    sharded = FullyShardedDataParallel(
        model, device_mesh=mesh, device_id=torch.device("cpu"), use_orig_params=False
    )
    optimizer = torch.optim.AdamW(sharded.parameters())
    schedule = torch.optim.lr_scheduler.ConstantLR(optimizer)
    tokenizer = AutoTokenizer.from_pretrained(policy)
    manager = FSDPCheckpointManager(sharded, optimizer, schedule, tokenizer)
    manager.save_checkpoint(actor, save_model_only=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
