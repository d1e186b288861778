"""Sampling: the tokens that `generate` takes, from the distribution the model gives, whatever the batch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from decoded_logits import decoded_logits
from tiny_policies import ARCHITECTURES, tiny_model, tiny_policy
from torch import Tensor

from fastrl.engines.reference import sampler
from fastrl.engines.reference.decoder import CachedDecoder
from fastrl.engines.reference.llama_decoder import LlamaDecoder, is_plain_llama
from fastrl.engines.reference.policy import Policy, PolicyError, left_padded
from fastrl.engines.reference.sampler import draw, sample

PROMPTS = [[3], [4, 5, 6, 7, 8], [9, 2, 11], [5, 5, 5, 5], [12, 13]]


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def full_logits(policy: Policy, tokens: list[int]) -> Tensor:
    """What the model says at every position of one sequence without padding."""
    with torch.no_grad():
        logits: Tensor = policy.model(input_ids=torch.tensor([tokens])).logits[0]
    return logits


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_greedy_responses_are_those_of_generate(architecture: str) -> None:
    policy = tiny_policy(architecture)
    ids, mask = left_padded(PROMPTS, policy.pad_id, policy.device)
    expected = policy.model.generate(
        input_ids=ids, attention_mask=mask, do_sample=False, max_new_tokens=12, pad_token_id=0
    )[:, ids.shape[1] :]
    responses = sample(policy, PROMPTS, 2, max_tokens=12, temperature=0, batch=100, generator=generator())
    width = responses.tokens.shape[1]
    assert np.array_equal(responses.tokens, expected[:, :width].repeat_interleave(2, 0).numpy())
    assert not expected[:, width:].any()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_log_probs_are_those_of_a_forward_pass_over_the_sampled_sequence(architecture: str) -> None:
    policy = tiny_policy(architecture)
    temperature = 1.3
    responses = sample(
        policy, PROMPTS, 3, max_tokens=10, temperature=temperature, batch=100, generator=generator()
    )
    for row, length in enumerate(responses.lengths):
        prompt, response = PROMPTS[row // 3], responses.tokens[row, :length].tolist()
        logits = full_logits(policy, prompt + response)[len(prompt) - 1 : -1] / temperature
        expected = logits.log_softmax(-1).gather(1, torch.tensor(response)[:, None]).squeeze(1)
        np.testing.assert_allclose(responses.logp[row, :length], expected.numpy(), atol=2e-5)
        assert not responses.logp[row, length:].any()


@pytest.mark.parametrize("architecture", ["llama", "llama-gqa", "qwen2"])
def test_the_fast_decoder_gives_the_models_logits(architecture: str) -> None:
    policy = tiny_policy(architecture)
    assert is_plain_llama(policy.model)
    ids, mask = left_padded(PROMPTS, policy.pad_id, policy.device)
    decoders = LlamaDecoder(policy.model, 8), CachedDecoder(policy.model, 8)
    steps = [decoded_logits(decoder, ids, mask) for decoder in decoders]
    for fast, reference in zip(*steps, strict=True):
        torch.testing.assert_close(fast, reference, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("architecture", ["qwen2-sliding", "gpt2", "gpt-neox", "gemma2"])
def test_other_architectures_are_left_to_their_own_forward_pass(architecture: str) -> None:
    assert not is_plain_llama(tiny_model(architecture))


def test_a_response_ends_at_its_first_end_token_and_includes_it() -> None:
    policy = tiny_policy("llama")
    responses = sample(policy, PROMPTS, 20, max_tokens=30, temperature=1, batch=100, generator=generator())
    for row, length, finished in zip(responses.tokens, responses.lengths, responses.finished, strict=True):
        inside = row[:length].tolist()
        assert (1 in inside) == bool(finished)
        assert 1 not in inside[:-1]
        assert finished or length == 30
        assert not row[length:].any()
    assert responses.finished.sum() > 0


def test_all_end_tokens_of_the_generation_config_end_a_response() -> None:
    model = tiny_model("llama")
    model.generation_config.eos_token_id = [1, 7, 8]
    policy = Policy(model.eval(), None, (1, 7, 8), 0, torch.device("cpu"))
    responses = sample(policy, PROMPTS, 8, max_tokens=30, temperature=1, batch=100, generator=generator())
    last = responses.tokens[np.arange(len(responses.lengths)), responses.lengths - 1]
    assert set(last[responses.finished].tolist()) == {1, 7, 8}


def test_dropping_finished_rows_changes_no_response(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = tiny_policy("qwen2")
    arguments = {"max_tokens": 24, "temperature": 1.0, "batch": 100}
    results = []
    for threshold in (0.0, 0.75, 2.0):  # never, as usual, at every token
        monkeypatch.setattr(sampler, "COMPACT_BELOW", threshold)
        results.append(sample(policy, PROMPTS, 8, **arguments, generator=generator()))  # type: ignore[arg-type]
    assert (results[0].lengths < 24).any()
    for other in results[1:]:
        assert np.array_equal(results[0].tokens, other.tokens)
        np.testing.assert_allclose(results[0].logp, other.logp, atol=1e-5)


def test_the_batch_size_only_changes_the_random_numbers() -> None:
    policy = tiny_policy("llama")
    whole, parts = (
        sample(policy, PROMPTS, 2, max_tokens=9, temperature=0, batch=batch, generator=generator())
        for batch in (100, 1)
    )
    assert np.array_equal(whole.tokens, parts.tokens)
    assert np.array_equal(whole.lengths, parts.lengths)


def test_the_same_generator_state_gives_the_same_responses() -> None:
    policy = tiny_policy("gpt2")
    first, second, other = (
        sample(policy, PROMPTS, 4, max_tokens=9, temperature=1, batch=8, generator=generator(seed))
        for seed in (5, 5, 6)
    )
    assert np.array_equal(first.tokens, second.tokens)
    assert not np.array_equal(first.tokens, other.tokens)


def test_sampling_leaves_torchs_global_generator_alone() -> None:
    policy = tiny_policy("llama")
    before = torch.get_rng_state()
    sample(policy, PROMPTS, 2, max_tokens=5, temperature=1, batch=8, generator=generator())
    assert torch.equal(torch.get_rng_state(), before)


def test_draws_follow_the_distribution_at_the_temperature() -> None:
    logits = torch.tensor([0.0, 1.0, 2.0, -torch.inf, 0.5])
    count = 200_000
    tokens, logp = draw(
        logits.expand(count, -1), 0.7, torch.rand(count, dtype=torch.float64, generator=generator())
    )
    expected = (logits / 0.7).softmax(-1)
    frequency = torch.bincount(tokens, minlength=5) / count
    torch.testing.assert_close(frequency, expected, atol=0.005, rtol=0)
    assert frequency[3] == 0
    torch.testing.assert_close(logp, expected.log()[tokens], atol=1e-5, rtol=0)


@pytest.mark.parametrize("uniform", [0.0, 1 - 2**-53])
def test_the_ends_of_the_unit_interval_give_possible_tokens(uniform: float) -> None:
    logits = torch.tensor([[-torch.inf, 0.0, 0.0, -torch.inf]])
    token, _ = draw(logits, 1.0, torch.tensor([uniform], dtype=torch.float64))
    assert token.item() in (1, 2)


def test_a_policy_that_has_diverged_is_an_error() -> None:
    policy = tiny_policy("llama")
    policy.model.lm_head.weight.data.fill_(torch.nan)
    with pytest.raises(PolicyError, match="not finite"):
        sample(policy, PROMPTS, 2, max_tokens=5, temperature=1, batch=8, generator=generator())


def test_no_prompts_give_no_responses() -> None:
    responses = sample(
        tiny_policy("llama"), [], 4, max_tokens=5, temperature=1, batch=8, generator=generator()
    )
    assert responses.tokens.shape[0] == len(responses.lengths) == 0
