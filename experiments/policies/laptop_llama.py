"""The laptop policy: a Llama-type model of about 0.3 M parameters, warmed up on a noisy teacher.

It solves a little under half of the problems when sampled once and nearly all within eight samples.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from eval.datasets.laptop_geometry.problem import Problem, prompt
from eval.datasets.laptop_geometry.splits import Pools, warmup_pools
from eval.datasets.laptop_geometry.teacher import TeacherShares, teacher_response
from eval.datasets.settings import LaptopGeometrySplits
from experiments.policies.plain_sampling import plain_sampling
from experiments.policies.saving import system_errors
from experiments.policies.settings import LaptopLlama, LlamaSizes, TokenizerSettings
from experiments.policies.sft import Example, warm_up
from experiments.policies.tokenizer import train_tokenizer
from experiments.policies.warm_up_data import check_warm_up_set, written_numbers


def build(
    model_config: Mapping[str, Any],
    dataset_config: Mapping[str, Any],
    folder: Path,
    announce: Callable[[str], None],
) -> None:
    """Build the policy and save it into `folder`, for AutoModelForCausalLM and AutoTokenizer to load.

    Everything random is seeded by `sft.seed` and `tokenizer.seed`, and one thread does the work: the same
    settings give the same weights on the same machine and torch. The caller's random state and thread count
    stay as they were. Raises ValueError for a data set that it does not know how to warm up on, OSError when
    the folder can't be written.
    """
    settings = LaptopLlama.from_mapping(model_config)
    check_warm_up_set(settings, dataset_config)
    in_domain, out_of_domain = warmup_pools(LaptopGeometrySplits.from_mapping(dataset_config["splits"]))
    teacher = settings.sft.teacher
    tokenizer = _tokenizer(settings.tokenizer, in_domain | out_of_domain, teacher)
    announce(f"tokenizer: {len(tokenizer)} tokens")
    rng = random.Random(settings.sft.seed)

    def draw_examples(count: int) -> list[Example]:
        prompts, responses = [], []
        for _ in range(count):
            pools = out_of_domain if rng.random() < settings.sft.out_of_domain_share else in_domain
            problem = _draw_problem(pools, rng)
            prompts.append(prompt(problem))
            responses.append(teacher_response(problem, teacher, rng) + tokenizer.eos_token)
        pairs = zip(tokenizer(prompts).input_ids, tokenizer(responses).input_ids, strict=True)
        return [Example(*pair) for pair in pairs]

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(settings.sft.seed)
            model = _model(settings.architecture, tokenizer)
            warm_up(model, draw_examples, settings.sft, tokenizer.pad_token_id, announce)
    finally:
        torch.set_num_threads(threads)
    with system_errors(folder):
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def _draw_problem(pools: Pools, rng: random.Random) -> Problem:
    return rng.choice(pools[rng.choice(list(pools))])


def _tokenizer(settings: TokenizerSettings, pools: Pools, teacher: TeacherShares) -> PreTrainedTokenizerFast:
    """Learnt on prompts and responses of all families alike; the two stay apart, as they do in training."""
    rng = random.Random(settings.seed)
    texts: list[str] = []
    for _ in range(settings.corpus_size):
        problem = _draw_problem(pools, rng)
        texts += [prompt(problem), teacher_response(problem, teacher, rng)]
    numbers = written_numbers(chain.from_iterable(pools.values()), lambda problem: problem.text)
    return train_tokenizer(texts, numbers, settings.vocab_size, settings.max_token_length)


def _model(sizes: LlamaSizes, tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=sizes.hidden,
        intermediate_size=sizes.feed_forward,
        num_hidden_layers=sizes.layers,
        num_attention_heads=sizes.heads,
        num_key_value_heads=sizes.heads,
        max_position_embeddings=sizes.max_positions,
        initializer_range=sizes.initializer_range,
        rope_parameters={"rope_type": "default", "rope_theta": sizes.rope_theta},
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    model = LlamaForCausalLM(config)
    model.generation_config = plain_sampling(tokenizer)
    return model
