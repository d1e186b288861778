"""How alike the policy gradients of trajectories are: cosines of the gradients of their log-probabilities.

The policy gradient of a trajectory is its advantage times the gradient of its mean token log-probability (the
clipped objectives at ratio 1, without KL). Between trajectories of equal advantage, the advantage and the
length cancel in the cosine, so the gradients of the summed log-probabilities stand for the policy gradients.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from fastrl.engines.reference.logprobs import Scorer, Sequences, image_arguments, response_logprobs


def gradient_cosines(scorer: Scorer, sequences: Sequences, temperature: float, chunk: int) -> Tensor:
    """(K, K) float64 cosines of the exact gradients of K trajectories; see `trajectory_gradients`.

    Holds K gradients, K times the trained parameters in float32: for small models. NaN in the rows of
    trajectories whose gradient is 0, such as an empty response.
    """
    gradients = trajectory_gradients(scorer, sequences, temperature, chunk)
    gram = torch.zeros(len(sequences), len(sequences), dtype=torch.float64)
    for part in gradients.values():
        flat = part.flatten(1).double()
        gram += (flat @ flat.T).cpu()
    return _cosines(gram)


def trajectory_gradients(
    scorer: Scorer, sequences: Sequences, temperature: float, chunk: int
) -> dict[str, Tensor]:
    """For each parameter (K, *shape): the gradient of each trajectory's summed response log-probability.

    Of a text model all parameters, `chunk` trajectories at once; of an image-text model those that require a
    gradient, as in training, one trajectory at a time.
    """
    if scorer.images is None:
        return _gradients_at_once(scorer.model, sequences, temperature, chunk)
    return _gradients_by_turns(scorer, sequences, temperature)


def _gradients_by_turns(scorer: Scorer, sequences: Sequences, temperature: float) -> dict[str, Tensor]:
    """Training's own log-probabilities, a backward pass for each trajectory.

    An image-text model's forward pass counts image tokens and puts features in their places, by values of the
    batch, which `torch.func.vmap` cannot do.
    """
    parameters = {name: value for name, value in scorer.model.named_parameters() if value.requires_grad}
    found = {name: value.new_empty(len(sequences), *value.shape) for name, value in parameters.items()}
    for k in range(len(sequences)):
        alone = sequences.take(torch.tensor([k]))
        total = response_logprobs(scorer, alone, temperature).sum()
        # A tower that is trained is not used where there is no image.
        gradients = torch.autograd.grad(total, list(parameters.values()), materialize_grads=True)
        for rows, gradient in zip(found.values(), gradients, strict=True):
            rows[k] = gradient
    return found


def _gradients_at_once(model: Any, sequences: Sequences, temperature: float, chunk: int) -> dict[str, Tensor]:
    parameters = {name: value.detach() for name, value in model.named_parameters()}
    buffers = dict(model.named_buffers())

    def log_probability(values: dict[str, Tensor], tokens: Tensor, predicts: Tensor) -> Tensor:
        output = torch.func.functional_call(
            model, (values, buffers), (), {"input_ids": tokens[None], "use_cache": False}
        )
        logits = output.logits[0, :-1].float() / temperature
        return -(F.cross_entropy(logits, tokens[1:], reduction="none") * predicts).sum()

    per_trajectory = torch.func.vmap(
        torch.func.grad(log_probability), in_dims=(None, 0, 0), chunk_size=chunk, randomness="error"
    )
    with sdpa_kernel(SDPBackend.MATH):  # the fused kernels have no batching rule
        gradients: dict[str, Tensor] = per_trajectory(
            parameters, sequences.tokens, _predicts(sequences).float()
        )
    return gradients


@torch.no_grad()
def head_gradient_cosines(scorer: Scorer, sequences: Sequences, temperature: float, sketch: Tensor) -> Tensor:
    """(K, K) float64 cosines of the gradients with respect to the output layer's weight alone.

    With logits W h the gradient is the sum over tokens of (onehot - probabilities) h^T. `sketch` (V, k),
    with E[sketch sketch^T] = 1, takes its first factor to k numbers, which leaves inner products right on
    average; the unit matrix leaves them exact. No backward pass; holds k times the hidden size of
    numbers a trajectory.
    NaN in the rows of trajectories whose gradient is 0.

    ValueError if the model's head cannot be applied apart from its body.
    """
    if not scorer.separate_head:
        raise ValueError(
            "the model caps or scales its logits, so its output layer has no such gradient; use exact ones"
        )
    output = scorer.model.base_model(
        input_ids=sequences.tokens, use_cache=False, **image_arguments(scorer, sequences)
    )
    hidden = output.last_hidden_state[:, :-1]
    predicts, targets = _predicts(sequences), sequences.tokens[:, 1:]
    rows = []
    for k in range(len(sequences)):
        states, chosen = hidden[k][predicts[k]], targets[k][predicts[k]]
        logits = scorer.model.get_output_embeddings()(states).float() / temperature
        errors = sketch[chosen] - logits.softmax(-1) @ sketch
        rows.append((errors.T @ states.float()).flatten().double())
    flat = torch.stack(rows)
    return _cosines((flat @ flat.T).cpu())


def vocabulary_sketch(vocabulary: int, width: int, generator: torch.Generator) -> Tensor:
    """(vocabulary, width) float32 normal projection for `head_gradient_cosines`; the unit matrix when the
    width is no smaller than the vocabulary."""
    if width >= vocabulary:
        return torch.eye(vocabulary)
    sketch: Tensor = torch.randn(vocabulary, width, generator=generator) / width**0.5
    return sketch


def _predicts(sequences: Sequences) -> Tensor:
    """(K, S - 1) True at the positions whose logits predict a response token."""
    positions = torch.arange(sequences.tokens.shape[1] - 1, device=sequences.tokens.device)
    first = sequences.prompt_lengths[:, None] - 1
    return (positions >= first) & (positions < first + sequences.response_lengths[:, None])


def _cosines(gram: Tensor) -> Tensor:
    norm = gram.diagonal().sqrt()
    norm = torch.where(norm > 0, norm, torch.full_like(norm, float("nan")))
    return (gram / norm[:, None] / norm).clamp(-1, 1)
