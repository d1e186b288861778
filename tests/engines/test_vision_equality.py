"""Image-text policies are read as transformers reads them: tokens, log-probabilities and gradients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from decoded_logits import decoded_logits
from plain_vision import plain_inputs, plain_logprobs
from tiny_vision_policies import VISION_ARCHITECTURES, mixed_questions, tiny_vision_policy

from fastrl.engines.reference import qwen_tower, sampler
from fastrl.engines.reference.decoder import CachedDecoder
from fastrl.engines.reference.image_features import ImageFeatures
from fastrl.engines.reference.image_prompts import ImagePrompt
from fastrl.engines.reference.llama_decoder import LlamaDecoder, is_plain_llama
from fastrl.engines.reference.logprobs import (
    Sequences,
    join_sequences,
    make_scorer,
    response_logprobs,
    score,
)
from fastrl.engines.reference.policy import Policy, left_padded, read_prompts
from fastrl.engines.reference.sampler import Responses, sample

Seeing = dict[str, Policy]
RESPONSES = [[7, 8, 1], [1], [], [10, 11, 12, 13, 14, 1], [4, 4]]
PATHS = ["qwen", "qwen, any architecture", "qwen3", "llava", "idefics", "gemma"]


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> Seeing:
    folder = tmp_path_factory.mktemp("policies")
    return {name: tiny_vision_policy(folder / name, name) for name in [*VISION_ARCHITECTURES, "qwen3"]}


@pytest.fixture(params=PATHS)
def policy(request: pytest.FixtureRequest, policies: Seeing, monkeypatch: pytest.MonkeyPatch) -> Policy:
    if request.param.endswith("any architecture"):
        monkeypatch.setattr(sampler, "make_decoder", CachedDecoder)
    return policies[request.param.split(",")[0]]


def prompts_of(policy: Policy) -> list[ImagePrompt]:
    """One to two images of several sizes, and none."""
    prompts = list(read_prompts(policy, mixed_questions(), 200))
    assert all(isinstance(prompt, ImagePrompt) for prompt in prompts)
    return prompts  # type: ignore[return-value]


def some_sequences(policy: Policy) -> Sequences:
    return join_sequences(
        prompts_of(policy),
        np.concatenate(RESPONSES).astype(np.int64),
        np.cumsum([0, *map(len, RESPONSES)]),
        policy.pad_id,
        policy.device,
    )


def draws(policy: Policy, n: int, temperature: float, max_tokens: int = 8) -> Responses:
    return sample(
        policy,
        prompts_of(policy),
        n,
        max_tokens=max_tokens,
        temperature=temperature,
        batch=100,
        generator=torch.Generator().manual_seed(0),
    )


def test_greedy_responses_are_those_of_generate(policy: Policy) -> None:
    responses = draws(policy, 2, temperature=0)
    for number in range(5):
        inputs = plain_inputs(policy, number, [])
        expected = policy.model.generate(**inputs, do_sample=False, max_new_tokens=8, pad_token_id=0)
        expected = expected[0, inputs["input_ids"].shape[1] :]
        for row in (2 * number, 2 * number + 1):
            length = int(responses.lengths[row])
            assert responses.tokens[row, :length].tolist() == expected[:length].tolist()


def test_sampled_log_probs_are_those_of_a_forward_pass_over_the_whole_sequence(policy: Policy) -> None:
    responses = draws(policy, 3, temperature=1.3)
    image_token = next(
        getattr(policy.model.config, name)
        for name in ("image_token_id", "image_token_index")
        if hasattr(policy.model.config, name)
    )
    compared = 0
    for row, length in enumerate(responses.lengths):
        tokens = responses.tokens[row, :length].tolist()
        if image_token not in tokens:  # transformers' own forward pass would look for an image there
            with torch.no_grad():
                expected = plain_logprobs(policy, row // 3, tokens, 1.3)
            np.testing.assert_allclose(responses.logp[row, :length], expected.numpy(), atol=1e-5)
            compared += 1
    assert compared > 5


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_scores_equal_those_of_each_sequence_alone(policy: Policy, batch: int) -> None:
    assert policy.vision is not None
    logp = score(make_scorer(policy.model, policy.vision.features), some_sequences(policy), 0.7, batch)
    assert logp.shape == (5, 6)
    for number, response in enumerate(RESPONSES):
        if response:
            with torch.no_grad():
                expected = plain_logprobs(policy, number, response, 0.7)
            torch.testing.assert_close(logp[number, : len(response)], expected, rtol=0, atol=1e-5)
        assert not logp[number, len(response) :].any()


@pytest.mark.parametrize("frozen", [False, True])
def test_gradients_are_those_of_the_models_own_forward_pass(policy: Policy, frozen: bool) -> None:
    """In micro-batches in which a question stands twice; into the tower unless its features are constant."""
    features = ImageFeatures(policy.model, constant=frozen, cache_bytes=1 << 20)
    scorer, sequences = make_scorer(policy.model, features), some_sequences(policy)
    policy.model.zero_grad()
    for rows in ([3, 0, 0], [4, 1]):
        response_logprobs(scorer, sequences.take(torch.tensor(rows)), 1.0).sum().backward()  # type: ignore[no-untyped-call]
    found = {name: parameter.grad for name, parameter in policy.model.named_parameters()}
    policy.model.zero_grad()
    for number in (3, 0, 0, 4, 1):
        plain_logprobs(policy, number, RESPONSES[number]).sum().backward()  # type: ignore[no-untyped-call]
    tower = 0
    for name, parameter in policy.model.named_parameters():
        sees = not any(part in name for part in ("language_model", "text_model", "lm_head"))
        if frozen and sees:
            assert found[name] is None
        elif parameter.grad is None:
            assert found[name] is None or not found[name].any()
        else:
            scale = float(parameter.grad.abs().max())
            torch.testing.assert_close(found[name], parameter.grad, rtol=1e-5, atol=1e-5 * max(1.0, scale))
            tower += sees and scale > 0
    assert frozen or tower > 10
    policy.model.zero_grad()


def test_the_fast_decoder_gives_the_models_logits(policies: Seeing) -> None:
    """Through repeating, selecting and stepping, under left padding."""
    policy = policies["qwen"]
    assert is_plain_llama(policy.model) and policy.vision is not None
    prompts = prompts_of(policy)
    ids, mask = left_padded(prompts, policy.pad_id, policy.device)
    decoders = LlamaDecoder(policy.model, 8), CachedDecoder(policy.model, 8)
    placed = policy.vision.features.place(prompts, ids.shape[1], left_padded=True)
    steps = [decoded_logits(decoder, ids, mask, placed) for decoder in decoders]
    for fast, reference in zip(*steps, strict=True):
        torch.testing.assert_close(fast, reference, rtol=1e-5, atol=1e-5)


def test_an_image_token_that_the_policy_samples_is_no_piece_of_an_image(policy: Policy) -> None:
    """transformers' forward pass would miss an image for it; a policy may sample any token."""
    assert policy.vision is not None
    config = policy.model.config
    token = getattr(config, "image_token_id", None) or config.image_token_index
    prompts = prompts_of(policy)
    responses = [[7, token, 8], [token, token, 1], [5], [token], [token, 3]]
    sequences = join_sequences(
        prompts,
        np.concatenate(responses).astype(np.int64),
        np.cumsum([0, *map(len, responses)]),
        policy.pad_id,
        policy.device,
    )
    scored = score(make_scorer(policy.model, policy.vision.features), sequences, 1.0, 100)
    never_seen = make_scorer(policy.model, ImageFeatures(policy.model, constant=False, cache_bytes=0))
    imageless = score(never_seen, sequences.take(torch.tensor([4])), 1.0, 1)[0]
    torch.testing.assert_close(scored[4, :2], imageless, rtol=0, atol=1e-5)
    ids, mask = left_padded(prompts, policy.pad_id, policy.device)
    decoder = sampler.make_decoder(policy.model, 3)
    with torch.no_grad():
        logits = decoder.prefill(
            ids, mask, policy.vision.features.place(prompts, ids.shape[1], left_padded=True)
        )
        for position in range(3):
            column = torch.tensor([row[position] if position < len(row) else 2 for row in responses])
            logp = logits.log_softmax(-1).gather(1, column[:, None]).squeeze(1)
            for row, response in enumerate(responses):
                if position < len(response):
                    assert scored[row, position].item() == pytest.approx(logp[row].item(), abs=1e-5)
            logits = decoder.step(column)


def test_dropping_finished_rows_changes_no_response(policy: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    results = []
    for threshold in (0.0, 0.75, 2.0):  # never, as usual, at every token
        monkeypatch.setattr(sampler, "COMPACT_BELOW", threshold)
        results.append(draws(policy, 8, temperature=1.0, max_tokens=12))
    for other in results[1:]:
        assert np.array_equal(results[0].tokens, other.tokens)
        np.testing.assert_allclose(results[0].logp, other.logp, atol=1e-5)


@pytest.mark.parametrize("largest", [0, 1024])
def test_the_towers_features_are_the_models(
    largest: int, policies: Seeing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In windows and across them, images of one size together and of several, small and large."""
    monkeypatch.setattr(qwen_tower, "LARGEST", largest)
    policy = policies["qwen"]
    prompts = [prompt for prompt in prompts_of(policy) if prompt.pixels]
    with torch.no_grad():
        found = ImageFeatures(policy.model, constant=False, cache_bytes=0).of(prompts)
        for prompt in prompts:
            pixels = prompt.pixels
            output = policy.model.model.get_image_features(pixels["pixel_values"], pixels["image_grid_thw"])
            expected = torch.cat(list(output.pooler_output))
            torch.testing.assert_close(found[prompt.key][0], expected, rtol=1e-5, atol=1e-5)
