"""Image-text policies read by nothing but transformers: what the engine's own reading is compared with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from tiny_vision_policies import mixed_questions
from torch import Tensor

from fastrl.engines.reference.policy import Policy


def plain_inputs(policy: Policy, number: int, response: list[int]) -> dict[str, Tensor]:
    """One question and its response as a user of transformers would put them together."""
    assert policy.vision is not None
    question = mixed_questions()[number]
    content: list[dict[str, str]] = []
    for place, part in enumerate(question.prompt.split("<image>")):
        content += [{"type": "image"}] * (place > 0) + [{"type": "text", "text": part}] * bool(part)
    processor = policy.vision.processor
    text = processor.apply_chat_template(
        [{"role": "user", "content": content}], add_generation_prompt=True, tokenize=False
    )
    images = {"images": [list(question.images)]} if question.images else {}
    inputs = dict(processor(text=[text], return_tensors="pt", **images))
    for name, value in (("input_ids", response), ("attention_mask", [1] * len(response))):
        inputs[name] = torch.cat([inputs[name], torch.tensor([value], dtype=torch.long)], 1)
    for name in {"mm_token_type_ids", "token_type_ids"} & inputs.keys():
        inputs[name] = torch.cat([inputs[name], inputs[name].new_zeros(1, len(response))], 1)
    return inputs


def plain_logprobs(
    policy: Policy,
    number: int,
    response: list[int],
    temperature: float = 1.0,
    change: Callable[[dict[str, Any]], Any] = lambda inputs: None,
) -> Tensor:
    """(L,) of the response's tokens by the model's own forward pass over one sequence, its inputs changed."""
    policy.model.base_model.rope_deltas = None
    inputs = plain_inputs(policy, number, response)
    change(inputs)
    logits = policy.model(**inputs).logits[0, -len(response) - 1 : -1] / temperature
    return logits.log_softmax(-1).gather(1, torch.tensor(response)[:, None]).squeeze(1)  # type: ignore[no-any-return]
