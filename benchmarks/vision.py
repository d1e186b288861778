"""What images cost in a step of the embedded engine: its stages, and how they grow with the images.

    python -m benchmarks.vision [--policy FOLDER] [--questions 32] [--rollouts 8] [--steps 3]

CPU seconds on one thread. Without a folder the policy is a Qwen2.5-VL of the laptop policy's shape with
random weights, of whose tokens one in 15 ends a response, so that lengths are like those of the trained one.
Images are coloured blocks; rewards are spread over each group. A FastRL row runs MDAP for its cost and keeps
the share that it names, as in `benchmarks.gpu_step`.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from benchmarks.gpu_step import MdapAtShare, StepShape, stage_seconds
from experiments.policies.qwen_vision import SPECIAL, qwen_vision_model, save_qwen_vision
from experiments.policies.settings import LlamaSizes, QwenVisionSizes, TowerSizes
from experiments.policies.tokenizer import train_tokenizer
from fastrl.engines.reference.clock import WORK
from fastrl.engines.reference.policy import Policy, load_policy
from fastrl.engines.reference.settings import VisionEngineSettings
from fastrl.rollouts import Question
from fastrl.selectors.all import KeepAll
from fastrl.selectors.base import Selector

SHAPE = QwenVisionSizes(
    text=LlamaSizes(
        hidden=96,
        feed_forward=288,
        layers=2,
        heads=4,
        max_positions=1024,
        initializer_range=0.04,
        rope_theta=10000.0,
    ),
    tower=TowerSizes(hidden=64, feed_forward=128, layers=2, heads=2, initializer_range=0.04),
)
VOCABULARY = 700
SIZES = ((84, 56), (168, 112), (336, 224))
CACHE_MB = 512
FIELDS = (*WORK, "step")


def main() -> None:
    parser = argparse.ArgumentParser(description="What images cost in the embedded engine.")
    parser.add_argument("--policy", help="Hugging Face folder of a Qwen2.5-VL; default: random weights")
    parser.add_argument("--questions", type=int, default=32)
    parser.add_argument("--rollouts", type=int, default=8)
    parser.add_argument("--max-tokens", type=int, default=40)
    parser.add_argument("--updates", type=int, default=4)
    parser.add_argument("--kept", type=float, default=0.25, help="share kept by FastRL")
    parser.add_argument("--steps", type=int, default=3, help="the first one warms up and is left out")
    parser.add_argument("--sizes", type=int, default=len(SIZES), help="how many image sizes")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(
        f"{options.questions} questions x {options.rollouts} rollouts, at most {options.max_tokens} tokens, "
        f"{options.updates} updates, {options.threads} thread(s); CPU seconds"
    )
    print_steps(options)
    print_sizes(options)


def print_steps(options: argparse.Namespace) -> None:
    """GRPO against FastRL, with the tower frozen and trained."""
    print(
        f"\n{'a step, images of 84 x 56':32s}" + "".join(f"{name:>13s}" for name in FIELDS) + f"{'speed':>8s}"
    )
    selectors: dict[str, Selector] = {
        "GRPO": KeepAll(),
        f"FastRL, {options.kept:.0%} kept": MdapAtShare(options.kept),
    }
    for tower in ("frozen", "trained"):
        base = None
        for name, selector in selectors.items():
            seconds = step_seconds(options, SIZES[0], tower == "frozen", selector)
            base = base or seconds["step"]
            columns = "".join(f"{seconds[field]:13.4f}" for field in FIELDS)
            print(f"{name + ', tower ' + tower:32s}{columns}{base / seconds['step']:7.2f}x", flush=True)


def print_sizes(options: argparse.Namespace) -> None:
    """How a step grows with its images."""
    names = "".join(f"{name:>12s}" for name in ("tokens", "read ms", "tower ms", "frozen s", "trained s"))
    print(f"\n{'GRPO, by image size':20s}{names}")
    for size in SIZES[: options.sizes]:
        policy, questions = loaded(options), asked(options, size)
        assert policy.vision is not None
        reading, prompts = timed(partial(list, map(policy.vision.reader.read, questions)))
        looking, _ = timed(partial(policy.vision.features.of, prompts))
        steps = [step_seconds(options, size, frozen, KeepAll())["step"] for frozen in (True, False)]
        times = [1e3 * reading / len(questions), 1e3 * looking / len(questions), *steps]
        columns = "".join(f"{value:12.3f}" for value in times)
        print(f"{f'{size[0]} x {size[1]}':20s}{prompts[0].image_tokens:12d}{columns}", flush=True)


def step_seconds(
    options: argparse.Namespace, size: tuple[int, int], frozen: bool, selector: Selector
) -> dict[str, float]:
    """Mean CPU seconds of each stage over the steps after the first."""
    engine = VisionEngineSettings(
        device="cpu",
        dtype="float32",
        threads=options.threads,
        micro_batch=32,
        logprob_batch=32,
        sample_batch=options.questions * options.rollouts,
        data_parallel=1,
        freeze_vision_tower=frozen,
        image_cache_mb=CACHE_MB,
    )
    shape = StepShape(options.rollouts, 1024, options.max_tokens, options.updates, options.steps)
    return stage_seconds(selector, engine, loaded(options), asked(options, size), shape, "cpu_s")


def loaded(options: argparse.Namespace) -> Policy:
    """The policy, fresh."""
    if options.policy:
        return load_policy(options.policy, "cpu", "float32")
    words = [f"w{index}" for index in range(VOCABULARY)]
    tokenizer = train_tokenizer([" ".join(words)], range(100), VOCABULARY, 4, SPECIAL)
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        save_qwen_vision(qwen_vision_model(SHAPE, tokenizer), tokenizer, 1 << 20, Path(folder))
        policy = load_policy(folder, "cpu", "float32")
    return dataclasses.replace(policy, eos_ids=tuple(range(20, 20 + len(tokenizer) // 15)))


def asked(options: argparse.Namespace, size: tuple[int, int]) -> list[Question]:
    """Questions with an image of coloured blocks each."""
    rng = random.Random(0)
    questions = []
    for index in range(options.questions):
        blocks = Image.new("RGB", (6, 4))
        blocks.putdata([(rng.randrange(256), rng.randrange(256), rng.randrange(256)) for _ in range(24)])
        text = " ".join(str(rng.randrange(100)) for _ in range(rng.randint(3, 6)))
        image = blocks.resize(size, Image.Resampling.NEAREST)
        questions.append(Question(str(index), f"<image>{text}", "", images=(image,)))
    return questions


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """CPU seconds of a call, and what it returned."""
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


if __name__ == "__main__":
    main()
