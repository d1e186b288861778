"""A trial that an image-text model is read here as its own forward pass reads it.

Wrong positions or a mask that is missing raise no error in a model's code: its probabilities are other ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from fastrl.engines.reference.image_prompts import ImagePrompt
from fastrl.engines.reference.logprobs import Scorer, join_sequences, response_logprobs
from fastrl.engines.reference.policy import Policy, left_padded
from fastrl.engines.reference.policy_error import PolicyError
from fastrl.engines.reference.sampler import make_decoder
from fastrl.rollouts import Question

_TOLERANCE = {torch.float32: 1e-3}
_LOW_PRECISION = 0.3


def check_images(policy: Policy, scorer: Scorer, questions: Sequence[Question]) -> None:
    """PolicyError unless the log-probabilities after the first prompt with images, in sampling and in
    training, are those of the model's own forward pass over what its processor makes of the prompt."""
    seen = next((question for question in questions if question.images), None)
    if policy.vision is None or seen is None:
        return
    prompt = policy.vision.reader.read(seen)
    tolerance = _TOLERANCE.get(policy.model.dtype, _LOW_PRECISION)
    for where, difference in zip(("sampling", "training"), _differences(policy, scorer, prompt), strict=True):
        if not difference <= tolerance:
            raise PolicyError(
                f"{type(policy.model).__name__} is not read right in {where}: log-probabilities after the "
                f"prompt of question {seen.id!r} are off by {difference:.2g} from the model's own forward "
                "pass; this engine does not know this architecture, train it with engine=easyr1"
            )


@torch.no_grad()
def _differences(policy: Policy, scorer: Scorer, prompt: ImagePrompt) -> tuple[float, float]:
    """The largest difference in log-probability of the first response token, in sampling and in training."""
    assert policy.vision is not None
    ids, mask = left_padded([prompt], policy.pad_id, policy.device)
    types = {name: torch.from_numpy(values)[None] for name, values in prompt.token_types.items()}
    inputs = {name: value.to(policy.device) for name, value in (types | prompt.pixels).items()}
    own = policy.model(input_ids=ids, attention_mask=mask, use_cache=False, **inputs).logits[0, -1]
    expected = own.float().log_softmax(-1)
    placed = policy.vision.features.place([prompt], len(prompt), left_padded=True)
    sampled = make_decoder(policy.model, 1).prefill(ids, mask, placed)[0].float().log_softmax(-1)
    token = expected.argmax()
    response = token[None].cpu().numpy()
    sequences = join_sequences([prompt], response, np.array([0, 1]), policy.pad_id, policy.device)
    trained = response_logprobs(scorer, sequences, 1.0)[0, 0]
    return float((sampled - expected).abs().max()), float((trained - expected[token]).abs())
