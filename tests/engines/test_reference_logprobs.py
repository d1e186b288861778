"""Log-probs of responses equal those of each sequence alone, for every architecture and batch."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_policies import ARCHITECTURES, tiny_model

from fastrl.engines.reference.logprobs import (
    Sequences,
    join_sequences,
    make_scorer,
    response_logprobs,
    score,
)

PROMPTS = [[3], [4, 5, 6, 7, 8], [9, 2, 11], [5, 5, 5, 5], [12, 13]]
RESPONSES = [[7, 8, 1], [1], [], [10, 11, 12, 13, 14, 1], [4, 4]]


def sequences() -> Sequences:
    return join_sequences(
        PROMPTS,
        np.concatenate(RESPONSES).astype(np.int64),
        np.cumsum([0, *map(len, RESPONSES)]),
        0,
        torch.device("cpu"),
    )


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("batch", [1, 2, 100])
def test_scores_equal_those_of_each_sequence_alone(architecture: str, temperature: float, batch: int) -> None:
    model = tiny_model(architecture).eval()
    logp = score(make_scorer(model), sequences(), temperature, batch)
    assert logp.shape == (5, 6)
    for row, prompt, response in zip(logp, PROMPTS, RESPONSES, strict=True):
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([prompt + response])).logits[0] / temperature
        expected = logits[len(prompt) - 1 : -1].log_softmax(-1)
        for t, token in enumerate(response):
            assert row[t].item() == pytest.approx(expected[t, token].item(), abs=1e-5)
        assert not row[len(response) :].any()


def test_a_head_that_does_more_than_multiply_is_found_out() -> None:
    assert make_scorer(tiny_model("llama").eval()).separate_head
    assert make_scorer(tiny_model("gpt2").eval()).separate_head
    assert not make_scorer(tiny_model("gemma2").eval()).separate_head  # caps its logits


def test_gradients_reach_the_model_and_only_from_response_tokens() -> None:
    model = tiny_model("llama-gqa").eval()
    rows = sequences().take(torch.tensor([3, 0]))
    logp = response_logprobs(make_scorer(model), rows, 1.0)
    logp.sum().backward()  # type: ignore[no-untyped-call]
    gradient = {name: parameter.grad for name, parameter in model.named_parameters()}
    model.zero_grad()
    for i in (0, 3):
        tokens = torch.tensor([PROMPTS[i] + RESPONSES[i]])
        logits = model(input_ids=tokens).logits[0, len(PROMPTS[i]) - 1 : -1]
        logits.log_softmax(-1).gather(1, torch.tensor(RESPONSES[i])[:, None]).sum().backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(gradient[name], parameter.grad, rtol=1e-4, atol=1e-5)


def test_taking_rows_cuts_the_padding() -> None:
    rows = sequences().take(torch.tensor([1, 2]))
    assert rows.tokens.tolist() == [[4, 5, 6, 7, 8, 1], [9, 2, 11, 0, 0, 0]]
    assert rows.response_mask(1).tolist() == [[True], [False]]


def test_batches_hold_every_row_once_and_rows_alike_in_length() -> None:
    batches = list(sequences().batches(2))
    assert sorted(row for batch in batches for row in batch.tolist()) == [0, 1, 2, 3, 4]
    assert batches[0].tolist() == [3, 1]
