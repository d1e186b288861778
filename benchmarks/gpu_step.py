"""Seconds a stage of one training step of the embedded engine: GRPO against FastRL at given kept shares.

    python -m benchmarks.gpu_step [--kept 0.5 0.3] [--size 0.5b|tiny] [--device cuda] [--steps 3]

Needs torch, transformers and numpy alone. The policy has random weights (the shape of Qwen2-0.5B, or a tiny
one), so every response has the full length and all differ; MDAP would keep them all. A FastRL row therefore
runs MDAP for its cost and keeps the share of each group that the row names. Without a GPU the default is the
tiny size on the CPU.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

from fastrl.engines.reference.clock import WORK, StageClock
from fastrl.engines.reference.data_order import DataPosition
from fastrl.engines.reference.policy import Policy, policy_of
from fastrl.engines.reference.run import prepare_run
from fastrl.engines.reference.settings import EngineSettings, TrainingSettings
from fastrl.engines.reference.step import RunState, run_step
from fastrl.filters.all import AllPrompts
from fastrl.method import Method, initial_method_state
from fastrl.objectives.grpo import Grpo
from fastrl.rewards import Reward
from fastrl.rollouts import FloatArray, Question, Rollouts
from fastrl.schedules.fixed import Fixed
from fastrl.selectors.all import KeepAll
from fastrl.selectors.base import Selection, Selector
from fastrl.selectors.mdap import Mdap
from fastrl.selectors.random_fraction import RandomFraction

SIZES: dict[str, dict[str, Any]] = {
    "0.5b": {
        "vocab_size": 151936,
        "hidden_size": 896,
        "intermediate_size": 4864,
        "num_hidden_layers": 24,
        "num_attention_heads": 14,
        "num_key_value_heads": 2,
    },
    "tiny": {
        "vocab_size": 512,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
    },
}
DEFAULT_TOKENS = {"0.5b": 512, "tiny": 32}
MDAP = Mdap(tau=0.8, compare="seed", epsilon=1e-4, weight="none", drop_zero_variance=False, kernel="numpy")


@dataclass(frozen=True)
class MdapAtShare:
    """Runs MDAP for its cost, then keeps a given share of each group."""

    share: float

    def problem_with(self, n: int) -> str | None:
        return None

    def select(self, rollouts: Rollouts, advantages: FloatArray, rng: np.random.Generator) -> Selection:
        MDAP.select(rollouts, advantages, rng)
        return RandomFraction(pruning_rate=1 - self.share).select(rollouts, advantages, rng)


def main() -> None:
    has_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description="Stage seconds of a training step, GRPO against FastRL.")
    parser.add_argument("--device", default="cuda" if has_gpu else "cpu")
    parser.add_argument("--size", choices=list(SIZES), default="0.5b" if has_gpu else "tiny")
    parser.add_argument("--dtype", default="bfloat16" if has_gpu else "float32")
    parser.add_argument(
        "--kept", type=float, nargs="+", default=[0.5, 0.3, 0.2], help="shares kept by FastRL"
    )
    parser.add_argument("--questions", type=int, default=32)
    parser.add_argument("--rollouts", type=int, default=8)
    parser.add_argument("--tokens", type=int, help="response tokens; default 512, tiny 32")
    parser.add_argument("--prompt-tokens", type=int, default=64)
    parser.add_argument("--updates", type=int, default=4)
    parser.add_argument("--micro-batch", type=int, default=8)
    parser.add_argument("--logprob-batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=3, help="the first one warms up and is left out")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    options.tokens = options.tokens or DEFAULT_TOKENS[options.size]
    torch.set_num_threads(options.threads)

    selectors: dict[str, Selector] = {"GRPO": KeepAll()}
    selectors |= {f"FastRL, {share:.0%} kept": MdapAtShare(share) for share in options.kept}
    print(
        f"{options.size} policy, {options.dtype} on {device_name(options.device)}: {options.questions} "
        f"questions x {options.rollouts} rollouts x {options.tokens} tokens, {options.updates} updates; "
        f"seconds per step (mean of {options.steps - 1})"
    )
    print(f"{'':18s}" + "".join(f"{stage:>13s}" for stage in (*WORK, "step")) + f"{'speed':>8s}")
    base = None
    for name, selector in selectors.items():
        seconds = measure(selector, options)
        base = base or seconds["step"]
        columns = "".join(f"{seconds[stage]:13.4f}" for stage in (*WORK, "step"))
        print(f"{name:18s}{columns}{base / seconds['step']:7.2f}x", flush=True)


def measure(selector: Selector, options: argparse.Namespace) -> dict[str, float]:
    """Mean wall seconds of each stage over the steps after the first."""
    engine = EngineSettings(
        device=options.device,
        dtype=options.dtype,
        threads=options.threads,
        micro_batch=options.micro_batch,
        logprob_batch=options.logprob_batch,
        sample_batch=options.questions * options.rollouts,
        data_parallel=1,
    )
    rng = random.Random(0)
    questions = [
        Question(str(i), " ".join(f"w{rng.randrange(2, 512)}" for _ in range(options.prompt_tokens)), "")
        for i in range(options.questions)
    ]
    shape = StepShape(options.rollouts, options.prompt_tokens, options.tokens, options.updates, options.steps)
    return stage_seconds(selector, engine, random_policy(options), questions, shape, "timing_s")


@dataclass(frozen=True)
class StepShape:
    """rollouts a question; tokens at most of a prompt and of a response; updates a step; steps in all, of
    which the first warms up and is left out."""

    rollouts: int
    prompt_tokens: int
    tokens: int
    updates: int
    steps: int


def stage_seconds(
    selector: Selector,
    engine: EngineSettings,
    policy: Policy,
    questions: Sequence[Question],
    shape: StepShape,
    clock_name: str,
) -> dict[str, float]:
    """Mean seconds of each stage over the steps after the first, every step on all questions.

    clock_name: "timing_s" for wall seconds, "cpu_s" for those of the process's CPU time.
    """
    method = Method(
        objective=Grpo(clip_low=0.2, clip_high=0.2, kl_coef=0.01, epsilon=1e-6),
        prompts=AllPrompts(),
        rollouts=Fixed(n=shape.rollouts),
        selector=selector,
        prune="before_logprob",
    )
    training = TrainingSettings(
        epochs=shape.steps,
        questions_per_step=len(questions),
        max_prompt_tokens=shape.prompt_tokens,
        max_response_tokens=shape.tokens,
        temperature=1.0,
        learning_rate=1e-6,
        betas=(0.9, 0.999),
        weight_decay=0.01,
        max_grad_norm=1.0,
        warmup_steps=0,
        updates=shape.updates,
        update_mode="fixed",
        validate_every=0,
        validation_samples=1,
        checkpoint_every=0,
        keep_checkpoints=1,
        record_rollouts_every=0,
        on_bad_reward="error",
    )
    run = prepare_run(method, training, engine, policy, questions, varied_reward, seed=0)
    state = RunState(0, DataPosition(0, 0), initial_method_state(method))
    totals = dict.fromkeys((*WORK, "step"), 0.0)
    for step in range(shape.steps):
        clock = StageClock(run.policy.device)
        state = run_step(run, state, shape.steps, clock).state
        if step:
            record = clock.record()
            for stage in totals:
                totals[stage] += record[f"{clock_name}/{stage}"] / (shape.steps - 1)
    return totals


def random_policy(options: argparse.Namespace) -> Policy:
    torch.manual_seed(0)
    config = Qwen2Config(
        **SIZES[options.size],
        max_position_embeddings=options.prompt_tokens + options.tokens,
        tie_word_embeddings=True,
        pad_token_id=0,
        eos_token_id=1,
        bos_token_id=None,
    )
    with torch.device(options.device):
        model = Qwen2ForCausalLM(config).to(getattr(torch, options.dtype))
    vocabulary = {"<pad>": 0, "<eos>": 1, **{f"w{i}": i for i in range(2, config.vocab_size)}}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>")
    return policy_of(model, wrapped)


def varied_reward(questions: Sequence[Question], responses: Sequence[str]) -> list[Reward]:
    """Four classes, spread over each group, as accuracy plus format bonus gives."""
    kinds = [(i % 2, i // 2 % 2) for i in range(len(responses))]
    return [Reward(total=right + 0.5 * form, accuracy=right, format=form) for right, form in kinds]


def device_name(device: str) -> str:
    return torch.cuda.get_device_name(device) if device.startswith("cuda") else device


if __name__ == "__main__":
    main()
