"""The train stage on EasyR1, in EasyR1's own environment: from a run's config and files to its training."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eval.datasets import load_questions
from experiments.atomic_files import write_file
from experiments.rollout_files import write_rollouts
from experiments.run_directory import RunDirectory
from experiments.stage_function import StageContext, StageStopped
from experiments.step_log import append_step, cut_back
from fastrl.engines.easyr1.translation import RunFiles
from fastrl.rollouts import Question

_REWARD_FILES = Path(__file__).parents[1] / "eval" / "rewards" / "easyr1"
_PLAIN_TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"


def train_on_easyr1(
    run: RunDirectory, config: dict[str, Any], policy: Path | str, context: StageContext
) -> None:
    """Train from EasyR1's newest checkpoint, or from `policy`, to the end, into `checkpoints/final`.

    Raises StageStopped after a stop request, with a checkpoint of the last step.
    """
    from fastrl.engines.easyr1 import launch
    from fastrl.engines.easyr1.trainer import TrainingStopped

    try:
        steps = launch.train(
            config=config,
            files=run_files(run, config, policy),
            final=run.final_checkpoint,
            on_step=lambda record: append_step(run.steps_path, record),
            on_rollouts=lambda step, record: write_rollouts(run.rollouts, step, record),
            cut_back=lambda step: context.announce(
                f"{cut_back(run.steps_path, step)} records after step {step} dropped"
            ),
            stop_requested=context.stop_requested,
            announce=context.announce,
        )
    except TrainingStopped as stopped:
        raise StageStopped(str(stopped)) from stopped
    context.announce(f"finished at step {steps}")


def run_files(run: RunDirectory, config: Mapping[str, Any], policy: Path | str) -> RunFiles:
    """What EasyR1 reads and writes for a run; questions become JSON lines in the run's `data` folder."""
    dataset = config["dataset"]
    data = run.path / "data"
    reward = dict(dataset["reward"])
    return RunFiles(
        policy=str(policy),
        train=_questions_file(data / "train.jsonl", dataset, dataset["train_split"]),
        validation=_questions_file(data / "validation.jsonl", dataset, dataset["validation_split"]),
        format_prompt=None,
        chat_template=_chat_template(data / "plain_chat.jinja", policy),
        reward=str(_REWARD_FILES / f"{reward.pop('name')}.py"),
        reward_arguments=reward,
        checkpoints=str(run.checkpoints.resolve()),
    )


def _questions_file(path: Path, dataset: Mapping[str, Any], split: str) -> str:
    questions: Sequence[Question] = load_questions(dataset, split)
    lines = [
        json.dumps({"question_id": each.id, "problem": each.prompt, "answer": each.answer})
        for each in questions
    ]
    write_file(path, "\n".join(lines) + "\n")
    return str(path.resolve())


def _chat_template(path: Path, policy: Path | str) -> str | None:
    """A template that passes the prompt on as it is, for a policy whose tokenizer has none of its own."""
    folder = Path(policy)
    if not folder.is_dir() or (folder / "chat_template.jinja").is_file():
        return None
    settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    if settings.get("chat_template"):
        return None
    write_file(path, _PLAIN_TEMPLATE)
    return str(path.resolve())
