"""The embedded engine's reading of images against transformers' own: sampling, log-probs and updates.

    python -m benchmarks.vision_paths [--policy FOLDER] [--questions 32] [--rollouts 8] [--repeats 5]

One thread, policy and images of `benchmarks.vision`. transformers takes an image as often as it has a
response; the engine takes it once, or, while the tower is frozen, once in a run.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.vision import SIZES, asked, loaded, timed
from fastrl.engines.reference.image_features import ImageFeatures
from fastrl.engines.reference.image_prompts import ImagePrompt, placed
from fastrl.engines.reference.logprobs import Scorer, Sequences, join_sequences, response_logprobs, score
from fastrl.engines.reference.policy import Policy, left_padded
from fastrl.engines.reference.sampler import sample


def main() -> None:
    parser = argparse.ArgumentParser(description="Images, the engine against transformers.")
    parser.add_argument("--policy", help="Hugging Face folder of a Qwen2.5-VL; default: random weights")
    parser.add_argument("--questions", type=int, default=32)
    parser.add_argument("--rollouts", type=int, default=8)
    parser.add_argument("--max-tokens", type=int, default=40)
    parser.add_argument("--updates", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print_paths(options)


def print_paths(options: argparse.Namespace) -> None:
    """The engine's passes against transformers' own, on the same prompts and responses."""
    policy, questions = loaded(options), asked(options, SIZES[0])
    assert policy.vision is not None
    prompts = [policy.vision.reader.read(question) for question in questions]
    n, budget = options.rollouts, options.max_tokens

    def own_samples() -> Any:
        generator = torch.Generator().manual_seed(0)
        rows = len(prompts) * n
        return sample(policy, prompts, n, max_tokens=budget, temperature=1.0, batch=rows, generator=generator)

    responses = own_samples()
    flat = np.concatenate([row[:end] for row, end in zip(responses.tokens, responses.lengths, strict=True)])
    flat[flat == policy.model.config.image_token_id] = min(policy.eos_ids)  # transformers would miss an image
    sequences = join_sequences(
        [prompt for prompt in prompts for _ in range(n)],
        flat,
        np.concatenate([[0], np.cumsum(responses.lengths)]),
        policy.pad_id,
        policy.device,
    )
    part = sequences.take(torch.arange(0, len(sequences), options.updates))
    frozen = Scorer(policy.model, True, policy.vision.features)
    trained = Scorer(policy.model, True, ImageFeatures(policy.model, constant=False, cache_bytes=0))
    tower = policy.model.model.visual

    def update(scorer: Scorer) -> None:
        for rows in part.batches(32):
            response_logprobs(scorer, part.take(rows), 1.0).sum().backward()  # type: ignore[no-untyped-call]

    def plain_update() -> None:
        for rows in part.batches(32):
            plain_logprobs(policy, part.take(rows)).sum().backward()  # type: ignore[no-untyped-call]

    def plain_scores() -> None:
        with torch.no_grad():
            for rows in sequences.batches(32):
                plain_logprobs(policy, sequences.take(rows))

    contenders: list[tuple[str, str, Callable[[], Any]]] = [
        ("sampling", "transformers' generate", lambda: generate(policy, prompts, n, budget)),
        ("sampling", "engine", own_samples),
        ("log-probs of all", "transformers' forward", plain_scores),
        ("log-probs of all", "engine", lambda: score(frozen, sequences, 1.0, 32)),
        ("update, tower trained", "transformers' forward", plain_update),
        ("update, tower trained", "engine", lambda: update(trained)),
        ("update, tower frozen", "engine", lambda: update(frozen)),
    ]
    mean = responses.lengths.mean()
    print(
        f"{len(prompts)} questions x {n} rollouts, at most {budget} tokens (mean {mean:.1f}), {len(part)} "
        f"rows an update, {options.threads} thread(s), median of {options.repeats}"
    )
    base: dict[str, float] = {}
    for what, whose, call in contenders:
        tower.requires_grad_(not what.endswith("frozen"))
        seconds = median_seconds(call, options.repeats)
        ratio = base.setdefault(what.split(",")[0], seconds) / seconds
        print(f"{what:24s}{whose:24s}{seconds * 1e3:10.1f} CPU-ms{ratio:8.2f}x", flush=True)
    first = sequences.take(torch.arange(min(32, len(sequences))))
    with torch.no_grad():
        off = float((plain_logprobs(policy, first) - response_logprobs(frozen, first, 1.0)).abs().max())
    print(f"log-probs differ by at most {off:.1e} from those of transformers' forward pass")


def plain_inputs(prompts: Sequence[ImagePrompt], width: int, left_padded: bool) -> dict[str, Tensor]:
    """Images and token types of rows as transformers takes them, the images as often as they occur."""
    rows = placed(prompts, width, left_padded, None, torch.device("cpu"))
    pixels = {name: torch.cat([prompt.pixels[name] for prompt in prompts]) for name in prompts[0].pixels}
    return {**rows.token_types, **pixels}


def plain_logprobs(policy: Policy, sequences: Sequences) -> Tensor:
    """(B, L) log-probabilities of responses by the model's forward pass as it is, on padded rows."""
    tokens = sequences.tokens
    prompts, responses = sequences.prompt_lengths[:, None], sequences.response_lengths[:, None]
    columns = torch.arange(tokens.shape[1])
    mask = (columns < prompts + responses).long()
    inputs = plain_inputs(sequences.image_prompts, tokens.shape[1], left_padded=False)
    logits = policy.model(input_ids=tokens, attention_mask=mask, use_cache=False, **inputs).logits[:, :-1]
    logp = logits.log_softmax(-1).gather(-1, tokens[:, 1:, None]).squeeze(-1)
    predicts = (columns[:-1] >= prompts - 1) & (columns[:-1] < prompts - 1 + responses)
    mask = sequences.response_mask(int(responses.max()))
    found: Tensor = logp.new_zeros(mask.shape).masked_scatter(mask, logp[predicts])
    return found


@torch.no_grad()
def generate(policy: Policy, prompts: Sequence[ImagePrompt], n: int, max_tokens: int) -> Tensor:
    """transformers' own sampling loop."""
    ids, mask = left_padded(prompts, policy.pad_id, policy.device)
    output: Tensor = policy.model.generate(
        input_ids=ids,
        attention_mask=mask,
        **plain_inputs(prompts, ids.shape[1], left_padded=True),
        do_sample=True,
        top_k=0,
        temperature=1.0,
        num_return_sequences=n,
        max_new_tokens=max_tokens,
        eos_token_id=list(policy.eos_ids),
        pad_token_id=policy.pad_id,
    )
    return output


def median_seconds(call: Callable[[], Any], repeats: int) -> float:
    """Median CPU seconds, after one call to warm up."""
    call()
    return statistics.median(timed(call)[0] for _ in range(repeats))


if __name__ == "__main__":
    main()
