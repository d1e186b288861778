"""Cosines of a recorded run with images, against transformers' own model, processor and autograd alone."""

from __future__ import annotations

import dataclasses
from itertools import combinations
from pathlib import Path

import numpy as np
import torch
from test_correlate_command import seeing_run
from torch import Tensor
from transformers import AutoModelForImageTextToText

from eval.datasets import load_questions
from experiments.offline.gradient_pairs import GroupSample, gradient_pairs, last_groups
from experiments.offline.prompts import run_prompts
from experiments.offline.sources import recorded_rollouts
from experiments.run_directory import RunDirectory
from fastrl.engines.reference.policy import load_policy, with_tower
from fastrl.engines.reference.qwen_processor import load_qwen_processor
from fastrl.method import build_method
from fastrl.rollouts import Question


def plain_gradients(folder: Path, question: Question, responses: list[list[int]]) -> Tensor:
    """(K, P) gradients of the summed log-probabilities, over everything but the vision tower."""
    model, processor = AutoModelForImageTextToText.from_pretrained(folder).eval(), load_qwen_processor(folder)
    parameters = [value for name, value in model.named_parameters() if ".visual." not in name]
    text = question.prompt.removeprefix("<image>")
    message = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": text}]}]
    prompt = processor.apply_chat_template(message, add_generation_prompt=True, tokenize=False)
    images = [[question.images[0].convert("RGB")]]
    rows = []
    for response in responses:
        inputs = dict(processor(text=[prompt], images=images, return_tensors="pt"))
        added = torch.tensor([response])
        for name, value in (("input_ids", added), ("attention_mask", torch.ones_like(added))):
            inputs[name] = torch.cat([inputs[name], value], 1)
        if "mm_token_type_ids" in inputs:
            inputs["mm_token_type_ids"] = torch.cat([inputs["mm_token_type_ids"], torch.zeros_like(added)], 1)
        model.base_model.rope_deltas = None
        logits = model(**inputs).logits[0, -len(response) - 1 : -1]
        total = logits.log_softmax(-1).gather(1, added.T).sum()
        gradients = torch.autograd.grad(total, parameters)
        rows.append(torch.cat([gradient.flatten() for gradient in gradients]).double())
    return torch.stack(rows)


def plain_cosines(run: RunDirectory, group: GroupSample) -> list[float]:
    """Of the pairs of equal reward, first trajectory first."""
    config, rollouts = run.config(), group.rollouts
    questions = {question.id: question for question in load_questions(config["dataset"], "train")}
    responses = [part.tolist() for part in np.split(rollouts.tokens, rollouts.token_offsets[1:-1])]
    question = questions[rollouts.question_ids[0]]
    rows = torch.nn.functional.normalize(plain_gradients(run.final_checkpoint, question, responses))
    pairs = combinations(range(len(rows)), 2)
    return [float(rows[i] @ rows[j]) for i, j in pairs if rollouts.rewards[i] == rollouts.rewards[j]]


def without_image_tokens(group: GroupSample) -> GroupSample:
    """With other tokens, since transformers' own forward pass would look for an image behind them."""
    moved = dataclasses.replace(group.rollouts, tokens=group.rollouts.tokens + 20)
    return dataclasses.replace(group, rollouts=moved)


def test_pairs_of_a_run_with_images_have_the_cosines_of_the_policys_own_forward_pass(tmp_path: Path) -> None:
    run = seeing_run(tmp_path)
    config = run.config()
    recorded = recorded_rollouts([str(run.path)], "fastrl", None, None)
    groups, _ = last_groups(recorded.steps(), None, None, 2, 0)
    groups = [without_image_tokens(group) for group in groups]
    policy = with_tower(load_policy(run.final_checkpoint, "cpu", "float32"), frozen=True, cache_bytes=1 << 20)
    found = gradient_pairs(
        policy,
        run_prompts(policy, config, [group.rollouts.question_ids[0] for group in groups]),
        groups,
        objective=build_method(config["method"]).objective,
        epsilon=1e-4,
        temperature=1.0,
        gradients="exact",
        sketch_width=1,
        checked_groups=0,
        chunk=1,
        seed=0,
    )
    expected = [cosine for group in groups for cosine in plain_cosines(run, group)]
    assert len(expected) > 10
    np.testing.assert_allclose(found.cosine, expected, rtol=0, atol=1e-5)
