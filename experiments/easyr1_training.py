"""The train stage on EasyR1, in EasyR1's own environment: from a run's config and files to its training."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eval.datasets import load_questions, make_if_generated, parquet_folder, split_record
from eval.datasets.records import DataError
from eval.preparation.prepare import read_card
from experiments.atomic_files import write_file
from experiments.errors import UserError
from experiments.policies.prepare import prepare_policy
from experiments.provenance import write_provenance
from experiments.rollout_files import write_rollouts
from experiments.run_directory import RunDirectory
from experiments.stage_function import StageContext, StageStopped
from experiments.step_log import append_step, cut_back
from fastrl.engines.easyr1.translation import RunFiles
from fastrl.engines.reference.loop import total_steps
from fastrl.engines.reference.settings import training_settings
from fastrl.method import build_method

_REWARD_FILE = Path(__file__).parents[1] / "eval" / "rewards" / "easyr1_reward.py"
_NEEDED = ("ray", "tensordict", "torchdata", "omegaconf")
_PLAIN_TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"


def train_on_easyr1(run: RunDirectory, config: dict[str, Any], context: StageContext) -> None:
    """Train from EasyR1's newest checkpoint, or from the starting policy, to the end.

    Writes what the embedded engine's stage does, see `experiments.train_stage.train`. Raises UserError in an
    environment that is not EasyR1's, DataError for a data set that is not prepared, StageStopped after a stop
    request, with a checkpoint of the last step.
    """
    if run.final_checkpoint.is_dir():
        return
    _check_environment(config["engine"]["name"])
    from fastrl.engines.easyr1 import launch

    dataset = config["dataset"]
    policy = prepare_policy(config["model"], dataset, run.root / "models", context.announce)
    files = run_files(run, config, policy)
    splits = write_inputs(files, dataset)
    planned = total_steps(
        training_settings(config["training"]), build_method(config["method"]), splits["train"]["questions"]
    )

    def started(steps: int) -> None:
        if steps < planned:
            context.announce(
                f"{steps} steps, not {planned}: EasyR1 leaves out questions that are longer than "
                "training.max_prompt_tokens, and draws that are not full"
            )
        write_provenance(
            run,
            attempt=context.attempt,
            policy=policy.name if isinstance(policy, Path) else policy,
            steps=steps,
            data=splits,
        )

    outcome = launch.train(
        config=config,
        run=run.run_id,
        files=files,
        final=run.final_checkpoint,
        on_start=started,
        on_step=lambda record: append_step(run.steps_path, record),
        on_rollouts=lambda step, record: write_rollouts(run.rollouts, step, record),
        cut_back=lambda step: context.announce(
            f"{cut_back(run.steps_path, step)} records after step {step} dropped"
        ),
        stop_requested=context.stop_requested,
        announce=context.announce,
    )
    if not outcome.finished:
        raise StageStopped(f"stopped after step {outcome.step}, as asked")
    context.announce(f"finished at step {outcome.step}")


def run_files(run: RunDirectory, config: Mapping[str, Any], policy: Path | str) -> RunFiles:
    """What EasyR1 reads and writes for a run. A prepared data set is its own parquet; other questions become
    JSON lines in the run's `data` folder. Writes nothing."""
    dataset, data = config["dataset"], run.path.resolve() / "data"

    def questions(split: str) -> str:
        prepared = parquet_folder(dataset)
        return str(prepared.resolve() / f"{split}.parquet" if prepared else data / f"{split}.jsonl")

    return RunFiles(
        policy=str(policy),
        train=questions(dataset["train_split"]),
        validation=questions(dataset["validation_split"]),
        format_prompt=str(data / "instruction.jinja") if dataset.get("instruction") else None,
        chat_template=str(data / "plain_chat.jinja") if _has_no_chat_template(policy) else None,
        reward=str(_REWARD_FILE),
        reward_arguments=dataset["reward"],
        checkpoints=str(run.checkpoints.resolve()),
    )


def write_inputs(files: RunFiles, dataset: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Write the files that this run alone reads; returns what provenance says of the splits.

    Raises DataError for a data set that is not prepared, and for one with images when the tokenizer has
    no chat template, without which no image gets its place in a prompt.
    """
    splits = {}
    for name, path in (("train", Path(files.train)), ("validation", Path(files.validation))):
        split = dataset[f"{name}_split"]
        if path.suffix == ".parquet":
            make_if_generated(dataset)
            facts = (read_card(path.parent) or {}).get("splits", {}).get(split)
            if facts is None:
                raise DataError(
                    f"{dataset['name']}: {path.parent} holds no data card with a split {split!r}; run "
                    f"fastrl data prepare {dataset['name']}, or set dataset.root to the folder that it wrote"
                )
            if facts.get("images") and files.chat_template is not None:
                raise DataError(
                    f"{files.policy} has no chat template, which puts images in their places, as those of "
                    f"{dataset['name']}; add its chat_template.jinja, or take another policy"
                )
            splits[name] = {"questions": facts["questions"], "digest": facts["sha256"]}
            continue
        questions = load_questions(dataset, split)
        rows = [
            {"question_id": question.id, "problem": question.prompt, "answer": question.answer}
            for question in questions
        ]
        write_file(path, "".join(json.dumps(row) + "\n" for row in rows))
        splits[name] = split_record(questions)
    if files.chat_template is not None:
        write_file(Path(files.chat_template), _PLAIN_TEMPLATE)
    if files.format_prompt is not None:
        write_file(Path(files.format_prompt), "{{ content | trim }}\n" + dataset["instruction"])
    return splits


def _check_environment(engine: str) -> None:
    """Raise UserError where EasyR1 could not be imported, whatever `engine.home` says."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise UserError(
            f"{sys.executable} is not of EasyR1's environment: it has no {', '.join(missing)}.",
            f"engine={engine}",
            "train there (docs/easyr1.md): on a cluster name its Python by cluster.slurm.python.train, "
            "elsewhere start the training with it",
        )


def _has_no_chat_template(policy: Path | str) -> bool:
    """Whether a policy's tokenizer comes without one, as of a policy that was not tuned for chat."""
    folder = Path(policy)
    settings = folder / "tokenizer_config.json"
    if not settings.is_file() or (folder / "chat_template.jinja").is_file():
        return False
    return not json.loads(settings.read_text(encoding="utf-8")).get("chat_template")
