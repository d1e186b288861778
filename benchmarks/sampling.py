"""The embedded engine's sampler against transformers' `generate`, side by side on one policy.

    python benchmarks/sampling.py [--policy FOLDER] [--threads 1] [--repeats 7]

Without a folder the policy has the laptop policy's shape and random weights; one token in 15 then ends a
response, so that lengths are like those of the trained one. Both sample at temperature 1 from all tokens.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from fastrl.engines.reference import sampler
from fastrl.engines.reference.decoder import CachedDecoder
from fastrl.engines.reference.policy import Policy, left_padded, load_policy
from fastrl.engines.reference.sampler import Responses, sample

VOCABULARY = 700


def main() -> None:
    parser = argparse.ArgumentParser(description="The embedded engine's sampler against generate.")
    parser.add_argument("--policy", help="Hugging Face folder; default: random weights")
    parser.add_argument("--questions", type=int, default=32)
    parser.add_argument("--rollouts", type=int, default=8)
    parser.add_argument("--max-tokens", type=int, default=48)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)

    policy = load_policy(options.policy, "cpu", "float32") if options.policy else random_policy()
    rng = random.Random(0)
    tokens = range(VOCABULARY // 10, policy.model.config.vocab_size)
    prompts = [rng.choices(tokens, k=rng.randint(7, 13)) for _ in range(options.questions)]
    n, budget = options.rollouts, options.max_tokens

    def own(temperature: float = 1.0) -> Responses:
        return sample(
            policy,
            prompts,
            n,
            max_tokens=budget,
            temperature=temperature,
            batch=len(prompts) * n,
            generator=torch.Generator().manual_seed(0),
        )

    def any_architecture() -> Responses:
        chosen = sampler.make_decoder
        sampler.make_decoder = CachedDecoder
        try:
            return own()
        finally:
            sampler.make_decoder = chosen

    contenders: dict[str, Callable[[], Any]] = {
        "transformers generate": lambda: generate(policy, prompts, n, budget, greedy=False),
        "sampler, any architecture": any_architecture,
        "sampler": own,
    }
    seconds = measure(contenders, options.repeats)
    base = statistics.median(seconds["transformers generate"])
    responses = own()
    print(
        f"{len(prompts)} questions x {n} rollouts, at most {budget} tokens (mean "
        f"{responses.lengths.mean():.1f}), {options.threads} thread(s), median of {options.repeats}"
    )
    for name, values in seconds.items():
        median = statistics.median(values)
        print(f"{name:28s} {median * 1e3:8.1f} CPU-ms   {base / median:5.2f} x")
    expected = generate(policy, prompts, n, budget, greedy=True)
    greedy = own(temperature=0)
    same = np.array_equal(expected[:, : greedy.tokens.shape[1]], greedy.tokens)
    print(f"greedy tokens equal to those of generate: {same}")


def random_policy() -> Policy:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=96,
        intermediate_size=288,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=256,
        tie_word_embeddings=True,
        pad_token_id=0,
        eos_token_id=1,
        initializer_range=0.04,
    )
    eos_ids = tuple(range(1, 1 + VOCABULARY // 15))
    return Policy(LlamaForCausalLM(config).eval(), None, eos_ids, 0, torch.device("cpu"))


@torch.no_grad()
def generate(policy: Policy, prompts: list[list[int]], n: int, max_tokens: int, greedy: bool) -> np.ndarray:
    """(N, L) responses of transformers' own sampling loop."""
    ids, mask = left_padded(prompts, policy.pad_id, policy.device)
    how: dict[str, Any] = {"do_sample": True, "top_k": 0, "temperature": 1.0, "num_return_sequences": n}
    if greedy:
        ids, mask = ids.repeat_interleave(n, 0), mask.repeat_interleave(n, 0)
        how = {"do_sample": False}
    output: np.ndarray = policy.model.generate(
        input_ids=ids,
        attention_mask=mask,
        max_new_tokens=max_tokens,
        eos_token_id=list(policy.eos_ids),
        pad_token_id=policy.pad_id,
        **how,
    )[:, ids.shape[1] :].numpy()
    return output


def measure(contenders: dict[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    """CPU seconds of each call, the contenders taking turns so that a busy machine slows them alike."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for call in contenders.values():
        call()
    for _ in range(repeats):
        for name, call in contenders.items():
            start = time.process_time()
            call()
            seconds[name].append(time.process_time() - start)
    return seconds


if __name__ == "__main__":
    main()
