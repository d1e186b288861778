"""A checkpoint in FSDP's shards, merged by EasyR1's own script, is the policy that was trained."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_assets import Assets

from fastrl.engines.easyr1.checkpoint_checks import export_policy, resumable_step

pytestmark = [pytest.mark.easyr1, pytest.mark.slow]

HERE = Path(__file__).parent
STAND_INS = HERE.parents[1] / "fastrl" / "engines" / "easyr1" / "cpu_stand_ins"
RANKS = 2

needs_a_checkout = pytest.mark.skipif(
    "EASYR1_HOME" not in os.environ, reason="EasyR1's merger is a script of its checkout: set EASYR1_HOME"
)


def sharded(policy: Path, actor: Path) -> None:
    """Write a policy's shards and its tokenizer into an actor's checkpoint folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        **os.environ,
        "PYTHONPATH": f"{STAND_INS}:{os.environ['EASYR1_HOME']}",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(RANKS),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
    }
    command = [sys.executable, str(HERE / "shard_policy.py"), str(policy), str(actor)]
    ranks = [
        subprocess.Popen(command, env={**environment, "RANK": str(rank)}, stderr=subprocess.PIPE, text=True)
        for rank in range(RANKS)
    ]
    errors = [rank.communicate(timeout=300)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0] * RANKS, errors[0][-3000:]


@needs_a_checkout
def test_merged_shards_give_the_log_probs_of_the_policy(assets: Assets, tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    actor, final = tmp_path / "global_step_6" / "actor", tmp_path / "final"
    sharded(assets.policy, actor)
    assert not list(actor.rglob("*.safetensors"))
    export_policy(actor, final, Path(os.environ["EASYR1_HOME"]))

    merged = AutoModelForCausalLM.from_pretrained(final, torch_dtype=torch.float32).eval()
    trained = AutoModelForCausalLM.from_pretrained(assets.policy, torch_dtype=torch.float32).eval()
    tokens = torch.randint(4, merged.config.vocab_size, (8, 30), generator=torch.Generator().manual_seed(0))

    def log_probs(model: torch.nn.Module) -> torch.Tensor:
        with torch.no_grad():
            return torch.as_tensor(model(tokens).logits).log_softmax(-1)

    assert (log_probs(merged) - log_probs(trained)).abs().max() < 0.02  # the merger writes bfloat16
    with torch.no_grad():
        for weights in trained.parameters():
            weights.copy_(weights.to(torch.bfloat16))
    assert torch.equal(log_probs(merged), log_probs(trained))
    assert AutoTokenizer.from_pretrained(final).get_vocab() == (
        AutoTokenizer.from_pretrained(assets.policy).get_vocab()
    )


@needs_a_checkout
def test_the_shards_tell_how_many_ranks_wrote_them(assets: Assets, tmp_path: Path) -> None:
    actor = tmp_path / "global_step_6" / "actor"
    sharded(assets.policy, actor)
    (actor.parent / "dataloader.pt").touch()
    (tmp_path / "checkpoint_tracker.json").write_text('{"last_global_step": 6}')
    assert resumable_step(tmp_path, RANKS) == 6
