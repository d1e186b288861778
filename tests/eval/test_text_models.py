"""The lm-eval models that generate text: distributions, stops, batches and order."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from laptop_benchmark import small_benchmark
from lm_eval.api.instance import Instance
from scipy.stats import chisquare
from small_evaluation import MODELS
from tiny_policy import VOCABULARY

from eval.benchmark_settings import BenchmarkSettings, DecodingSettings
from eval.decoding import generation_kwargs
from eval.models import load_model
from eval.models.response import Response


def responses(
    policy: Path, lm: str, prompts: list[str], decoding: DecodingSettings, **changes: Any
) -> list[Response]:
    """What an lm-eval model generates for the prompts, each `decoding.samples` times."""
    settings = BenchmarkSettings.from_mapping(small_benchmark(lm=lm, **changes))
    arguments = generation_kwargs(decoding, settings.max_gen_toks, settings.until, seed=5)
    requests = [
        Instance(
            "generate_until", {}, (prompt, copy.deepcopy(arguments)), 0, ("task", index, decoding.samples)
        )
        for index, prompt in enumerate(prompts)
        for _ in range(decoding.samples)
    ]
    generated: list[Response] = load_model(policy, settings, lambda: None).generate_until(requests)
    return generated


PROMPTS = [
    "Q: a b?\nA:",
    "Q: In triangle ABC, two angles are 30 and 40.\nA:",
    "Q: x\nA:",
    "Q: d\nA:",  # as long as the one before it, and earlier in the alphabet
    "Q: A room is 3 by 4.\nA:",
]


def test_greedy_responses_are_those_of_transformers(policy: Path) -> None:
    ours, theirs = (
        responses(policy, lm, PROMPTS, DecodingSettings(0.0, 1), max_gen_toks=40) for lm in MODELS
    )
    assert ours == theirs
    assert [(r.tokens, r.truncated) for r in ours] == [(r.tokens, r.truncated) for r in theirs]


@pytest.mark.parametrize("lm", MODELS)
@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_samples_follow_the_whole_distribution_of_the_policy(
    policy: Path, lm: str, temperature: float
) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    drawn = responses(
        policy, lm, PROMPTS[:1], DecodingSettings(temperature, 4000), max_gen_toks=1, batch_size=4000
    )
    tokenizer, model = AutoTokenizer.from_pretrained(policy), AutoModelForCausalLM.from_pretrained(policy)
    with torch.no_grad():
        logits = model(**tokenizer(PROMPTS[:1], return_tensors="pt")).logits[0, -1]
    expected = torch.softmax(logits.double() / temperature, -1).numpy()
    counts = Counter(drawn)
    # The special tokens leave no text: they are one outcome.
    texts = ["", *VOCABULARY[3:]]
    shares = np.array([expected[:3].sum(), *expected[3:]])
    assert set(counts) <= set(texts)
    assert len(counts) > 60  # transformers would keep the 50 likeliest tokens by default
    assert chisquare([counts[text] for text in texts], shares / shares.sum() * 4000).pvalue > 1e-4


@pytest.mark.parametrize("lm", MODELS)
def test_a_response_ends_only_at_the_strings_in_until(policy: Path, lm: str) -> None:
    decoding = DecodingSettings(1.0, 40)
    whole = responses(policy, lm, PROMPTS, decoding)
    assert any("\n" in response for response in whole)
    cut = responses(policy, lm, PROMPTS, decoding, until=["\n"])
    assert not any("\n" in response for response in cut)
    ended_early = [r for r in cut if not r.truncated]
    assert len(ended_early) > len([r for r in whole if not r.truncated])


@pytest.mark.parametrize("lm", MODELS)
def test_each_batch_draws_for_itself(policy: Path, lm: str) -> None:
    drawn = responses(policy, lm, PROMPTS, DecodingSettings(1.0, 60), batch_size=60, max_gen_toks=1)
    batches = [drawn[start : start + 60] for start in range(0, 300, 60)]
    # The prompts' distributions are alike, so equal random numbers would mostly draw equal tokens.
    for one, other in combinations(batches, 2):
        assert sum(a == b for a, b in zip(one, other, strict=True)) < 20


@pytest.mark.parametrize("lm", MODELS)
def test_responses_come_back_in_the_order_of_the_requests(policy: Path, lm: str) -> None:
    greedy = DecodingSettings(0.0, 1)
    forward = responses(policy, lm, PROMPTS, greedy, batch_size=3)
    backward = responses(policy, lm, PROMPTS[::-1], greedy, batch_size=2)
    assert forward == backward[::-1] and len(set(forward)) > 1


@pytest.mark.parametrize("lm", MODELS)
def test_a_prompt_is_never_cut_to_make_room(policy: Path, lm: str) -> None:
    with pytest.raises(ValueError, match=r"of 192, no room for 100 more: lower max_gen_toks.*'Q: long"):
        responses(policy, lm, ["Q: long" + " x" * 60], DecodingSettings(0.0, 1), max_gen_toks=100)


def test_a_response_keeps_what_it_knows_through_copies_and_processes() -> None:
    response = Response("text", tokens=3, truncated=True)
    for other in (copy.deepcopy(response), pickle.loads(pickle.dumps(response))):
        assert (other, other.tokens, other.truncated) == ("text", 3, True)
