"""The prompts behind recorded rollouts, as the policy that sampled them read them."""

from __future__ import annotations

import dataclasses
import io
import math
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from PIL import Image

from eval.datasets import load_questions
from eval.datasets.images import LazyImage, image_bytes
from experiments.errors import UserError
from fastrl.engines.easyr1.settings import EASYR1_ENGINES
from fastrl.engines.reference.image_check import check_images
from fastrl.engines.reference.image_prompts import PLACEHOLDER
from fastrl.engines.reference.logprobs import make_scorer
from fastrl.engines.reference.policy import Policy, PolicyError, encode_prompts, read_prompts
from fastrl.rollouts import Question

PromptOf = Callable[[str], Sequence[int]]
"""A question's prompt by its id: token ids, an `ImagePrompt` of an image-text policy. One at a time, since
images take memory."""


def run_prompts(policy: Policy, config: Mapping[str, Any], names: Collection[str]) -> PromptOf:
    """Prompts of a run's data set, in the form that its engine gives to a policy.

    Raises UserError for a question that the data set does not have, and for images that the policy does not
    see; PolicyError for an image-text model that the embedded engine does not read as the model itself does.
    What it returns raises PolicyError for a prompt that the policy cannot read.
    """
    dataset = config["dataset"]
    questions = {question.id: question for question in load_questions(dataset, dataset["train_split"])}
    if unknown := sorted(set(names) - questions.keys()):
        raise UserError(
            f"The question {unknown[0]!r} has no prompt.",
            f"data set {dataset['name']}",
            "the run's data set has changed since; restore it, or record the rollouts again",
        )
    seen = next((name for name in sorted(names) if questions[name].images), None)
    if seen is not None and policy.vision is None:
        raise UserError(
            f"The question {seen!r} has images, but the model reads text alone.",
            "--model",
            "name the image-text policy that sampled the rollouts; by default it is the run's final one",
        )
    if seen is not None and policy.vision is not None:
        check_images(policy, make_scorer(policy.model, policy.vision.features), [questions[seen]])
    if config["engine"]["name"] in EASYR1_ENGINES:
        return lambda name: _easyr1_prompt(policy, questions[name], config["engine"])
    return lambda name: read_prompts(policy, [questions[name]], sys.maxsize)[0]


def file_prompts(policy: Policy) -> PromptOf:
    """Of files of other trainers, where the question is its prompt: a text in the chat template already.

    What it returns raises UserError for a prompt that needs images, PolicyError for an empty one.
    """
    vision = policy.vision
    if vision is None:
        return lambda text: encode_prompts(policy.tokenizer, [Question(text, text, "")], sys.maxsize)[0]

    def read(text: str) -> Sequence[int]:
        try:
            if PLACEHOLDER not in text:
                return vision.reader.read_templated(text, text, ())
            reason = f"{text[:80]!r} holds {PLACEHOLDER}"
        except PolicyError as error:
            reason = str(error)
        raise UserError(
            f"A prompt can't be read as text alone: {reason}.",
            "the file's question column",
            "files hold no images; take a run recorded here, whose data set has them, or rollouts without",
        )

    return read


def _easyr1_prompt(policy: Policy, question: Question, engine: Mapping[str, Any]) -> Sequence[int]:
    if policy.vision is not None:
        images = tuple(
            _resized(image, engine["min_pixels"], engine["max_pixels"]) for image in question.images
        )
        return read_prompts(policy, [dataclasses.replace(question, images=images)], sys.maxsize)[0]
    text = question.prompt
    if policy.tokenizer.chat_template is not None:  # else it trained with a template that adds nothing
        message = {"role": "user", "content": text}
        text = policy.tokenizer.apply_chat_template([message], add_generation_prompt=True, tokenize=False)
    ids: list[int] = policy.tokenizer(text, add_special_tokens=False)["input_ids"]
    return ids


def _resized(image: Any, least: int, most: int) -> Any:
    """The image with its number of pixels within these bounds, as EasyR1 makes it before its processor."""
    if isinstance(image, LazyImage):  # which puts transparent pixels on white; EasyR1 does not
        image = Image.open(io.BytesIO(image_bytes(image.source)))
    pixels = image.width * image.height
    bound = min(max(pixels, least), most)
    if bound == pixels:
        return image
    factor = math.sqrt(bound / pixels)
    return image.resize((int(image.width * factor), int(image.height * factor)))
