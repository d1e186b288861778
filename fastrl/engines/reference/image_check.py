"""A trial that an image-text model is read here as its own forward pass reads it.

Wrong positions or a mask that is missing raise no error in a model's code: its probabilities are other ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from fastrl.engines.reference.image_features import vision_parameters
from fastrl.engines.reference.image_prompts import ImagePrompt, image_token_id
from fastrl.engines.reference.logprobs import Scorer, join_sequences, response_logprobs
from fastrl.engines.reference.policy import Policy, left_padded
from fastrl.engines.reference.policy_error import PolicyError, known_architecture
from fastrl.engines.reference.sampler import make_decoder
from fastrl.rollouts import Question

_TOLERANCE = {torch.float32: 1e-3}
_LOW_PRECISION = 0.3
_PADDING = 3
"""Columns of padding before the prompt that is tried."""


def check_images(policy: Policy, scorer: Scorer, questions: Sequence[Question]) -> None:
    """PolicyError unless the first prompt with images is read as the model itself reads it.

    The log-probabilities of the first two tokens after it, in sampling (with padding before the prompt, and
    for two responses) and in training, must be those of the model's own forward pass over what its processor
    makes of the prompt. And what is kept of its images must not depend on parameters that are trained.
    """
    seen = next((question for question in questions if question.images), None)
    if policy.vision is None or seen is None:
        return
    prompt = policy.vision.reader.read(seen)
    tolerance = _TOLERANCE.get(policy.model.dtype, _LOW_PRECISION)
    with known_architecture(policy.model):
        _check_kept_features(policy, prompt)
        differences = _differences(policy, scorer, prompt)
    for where, difference in zip(("sampling", "training"), differences, strict=True):
        if not difference <= tolerance:
            raise PolicyError(
                f"{type(policy.model).__name__} is not read right in {where}: log-probabilities after the "
                f"prompt of question {seen.id!r} are off by {difference:.2g} from the model's own forward "
                "pass; this engine does not know this architecture, train it with engine=easyr1"
            )


def _check_kept_features(policy: Policy, prompt: ImagePrompt) -> None:
    """PolicyError if a frozen tower's features change with what is trained, as embeddings of codes do."""
    assert policy.vision is not None
    frozen = not any(parameter.requires_grad for _, parameter in vision_parameters(policy.model))
    if policy.vision.features.constant and frozen and policy.vision.features.follow_training(prompt):
        raise PolicyError(
            f"what {type(policy.model).__name__} makes of images depends on parameters that are trained with "
            "its text, so it cannot be kept; set engine.freeze_vision_tower=false"
        )


@torch.no_grad()
def _differences(policy: Policy, scorer: Scorer, prompt: ImagePrompt) -> tuple[float, float]:
    """The largest difference in log-probability after the prompt, in sampling and in training."""
    assert policy.vision is not None
    first = _own_logprobs(policy, prompt, [])
    one = _likeliest(policy, first)
    second = _own_logprobs(policy, prompt, [one])
    other = _likeliest(policy, second)

    ids, mask = left_padded([prompt], policy.pad_id, policy.device)
    padding = ids.new_full((1, _PADDING), policy.pad_id)
    ids, mask = torch.cat([padding, ids], 1), torch.cat([torch.zeros_like(padding), mask], 1)
    decoder = make_decoder(policy.model, 2)
    placed = policy.vision.features.place([prompt], ids.shape[1], left_padded=True)
    after_prompt = decoder.prefill(ids, mask, placed).float().log_softmax(-1)
    decoder.repeat(2)
    after_one = decoder.step(ids.new_tensor([one, one])).float().log_softmax(-1)
    sampling = max(
        float((after_prompt - first).abs().max()),
        float((after_one[:, other] - second[other]).abs().max()),
    )

    response = np.array([one, other])
    sequences = join_sequences([prompt], response, np.array([0, 2]), policy.pad_id, policy.device)
    expected = torch.stack([first[one], second[other]])
    trained = response_logprobs(scorer, sequences, 1.0)[0]
    return sampling, float((trained - expected).abs().max())


def _own_logprobs(policy: Policy, prompt: ImagePrompt, response: list[int]) -> Tensor:
    """(V,) after the prompt and some tokens, by the model's forward pass as it is."""
    ids = torch.tensor([[*prompt, *response]], device=policy.device)
    types = {
        name: torch.from_numpy(np.concatenate([values, np.zeros(len(response), np.int64)]))[None]
        for name, values in prompt.token_types.items()
    }
    inputs = {name: value.to(policy.device) for name, value in (types | prompt.pixels).items()}
    output = policy.model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False, **inputs)
    logprobs: Tensor = output.logits[0, -1].float().log_softmax(-1)
    return logprobs


def _likeliest(policy: Policy, logprobs: Tensor) -> int:
    """A token that the model's own forward pass does not take for a piece of an image."""
    likeliest: list[int] = logprobs.topk(2).indices.tolist()
    return next(token for token in likeliest if token != image_token_id(policy.model))
