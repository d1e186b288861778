"""Where recorded rollouts come from: the folder of a run of ours, or files of another trainer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.errors import UserError
from experiments.offline.files import Encode, RolloutFile, no_rows
from experiments.offline.rollout_format import RolloutFormat, named_format
from experiments.offline.rows import steps_of
from experiments.run_directory import RunDirectory
from fastrl.replay.recorded import Course, RecordedStep

_SUFFIXES = (".parquet", ".jsonl")
_RECORD = "training.record_rollouts_every=1"


@dataclass(frozen=True)
class RecordedRollouts:
    """label: for titles. files: in the order of training. epoch_of: a step's epoch, from 0.

    config: the run's resolved config, None for files of others. notes: what a reader of results must know.
    """

    label: str
    files: tuple[RolloutFile, ...]
    epoch_of: Callable[[int], int]
    course: Course
    config: Mapping[str, Any] | None
    notes: tuple[str, ...]

    def steps(self) -> Iterator[RecordedStep]:
        """Every recorded step, read anew, one at a time."""
        rows = (rows for file in self.files for rows in file.batches())
        for step, rollouts, accuracy in steps_of(rows):
            yield RecordedStep(step, self.epoch_of(step), rollouts, accuracy)

    def largest_group(self) -> int:
        """Trajectories of the largest group of the first step. Raises UserError when nothing is recorded."""
        first = next(self.steps(), None)
        if first is None:
            raise no_rows(self.files[0].path)
        return int(first.rollouts.group_sizes.max())


def recorded_rollouts(
    words: Sequence[str], format_name: str, tokenizer: str | None, steps_per_epoch: int | None
) -> RecordedRollouts:
    """What a command's words name: a run's folder, a folder of files, or files; and columns.FIELD=NAME.

    Raises UserError when they name nothing that can be read.
    """
    given = [word for word in words if word.startswith("columns.")]
    columns = dict(word.removeprefix("columns.").partition("=")[::2] for word in given)
    paths = [Path(word) for word in words if word not in given]
    if not paths:
        raise UserError("No source is named.", "command line", "name a run's folder, or files of rollouts")
    if len(paths) == 1 and (paths[0] / "config.yaml").is_file():
        return run_rollouts(RunDirectory(paths[0]))
    files = rollouts_in(paths[0]) if len(paths) == 1 and paths[0].is_dir() else paths
    encode = tokenizer_encode(tokenizer) if tokenizer else None
    return file_rollouts(files, named_format(format_name, columns), encode, steps_per_epoch)


def run_rollouts(run: RunDirectory) -> RecordedRollouts:
    """The rollouts that a run recorded. Raises UserError when it recorded none."""
    config = run.config()
    paths = sorted(run.rollouts.glob("step_*.parquet"), key=lambda path: int(path.stem.removeprefix("step_")))
    if not paths:
        raise UserError(
            f"The run {run.run_id} recorded no rollouts "
            f"(training.record_rollouts_every is {config['training'].get('record_rollouts_every')}).",
            str(run.rollouts),
            f"train it again with {_RECORD}; that makes another run, the recorded one",
        )
    epochs = {record["step"]: record["epoch"] for record in run.steps() if record["step"] > 0}
    unknown = [path for path in paths if int(path.stem.removeprefix("step_")) not in epochs]
    if unknown:
        raise UserError(
            f"The step log has no record of the step of {unknown[0].name}.",
            str(run.steps_path),
            "the run was cut back after it recorded this file; let it finish: fastrl run",
        )
    total = int((run.provenance() or {}).get("steps") or max(epochs))
    last = {epoch: step for step, epoch in sorted(epochs.items())}
    progress = tuple(last[epoch] / total for epoch in sorted(last) if last[epoch] <= total)
    every = config["training"].get("record_rollouts_every")
    notes = () if every == 1 else (f"one step in {every} is recorded; the others are taken to be like them",)
    own = named_format("fastrl", {})
    files = tuple(RolloutFile(path, own, None) for path in paths)
    return RecordedRollouts(run.run_id, files, epochs.__getitem__, Course(progress), config, notes)


def file_rollouts(
    paths: Sequence[Path], rollout_format: RolloutFormat, encode: Encode | None, steps_per_epoch: int | None
) -> RecordedRollouts:
    """Rollouts of another trainer: parquet or JSON lines files, in the order of training.

    steps_per_epoch: for schedules that change at the end of an epoch; None takes all for one epoch.
    Raises UserError for a file that is missing or of another kind.
    """
    for path in paths:
        if not path.is_file():
            raise UserError("There is no such file or run.", str(path), "name a run's folder, or files")
        if path.suffix not in _SUFFIXES:
            raise UserError(
                f"{path.name} is neither parquet nor JSON lines.", str(path), "give .parquet or .jsonl files"
            )
    files = tuple(RolloutFile(path, rollout_format, encode) for path in paths)
    label = paths[0].name if len(paths) == 1 else f"{paths[0].name} and {len(paths) - 1} more"
    if steps_per_epoch is None:
        note = "no epochs are known, so schedules such as ARS stay at their first number: --steps-per-epoch N"
        return RecordedRollouts(label, files, lambda step: 0, Course((1.0,)), None, (note,))
    rows = next(files[0].batches(), None)
    if rows is None:
        raise no_rows(paths[0])
    first = int(rows.step[0])
    total = files[-1].last_step() - first + 1
    ends = range(steps_per_epoch, total + 1, steps_per_epoch)
    course = Course(tuple(end / total for end in ends))
    return RecordedRollouts(label, files, lambda step: (step - first) // steps_per_epoch, course, None, ())


def rollouts_in(folder: Path) -> list[Path]:
    """The files of rollouts in a folder, by the numbers in their names."""
    paths = [path for path in folder.iterdir() if path.suffix in _SUFFIXES]
    if not paths:
        raise UserError(
            "The folder holds neither a run nor files of rollouts.",
            str(folder),
            f"name a run's folder (recorded with {_RECORD}), or .parquet or .jsonl files",
        )
    return sorted(paths, key=lambda path: (_number_in(path.stem), path.name))


def _number_in(stem: str) -> int:
    digits = "".join(character if character.isdigit() else " " for character in stem).split()
    return int(digits[-1]) if digits else -1


def tokenizer_encode(name: str) -> Encode:
    """The encoder of a Hugging Face tokenizer, by folder or name. Raises UserError when there is none."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError) as error:
        raise UserError(
            f"No tokenizer can be loaded: {str(error).splitlines()[0]}",
            f"--tokenizer {name}",
            "give a folder or a hub name that AutoTokenizer loads",
        ) from None

    def encode(texts: Sequence[str]) -> Sequence[Sequence[int]]:
        ids: Sequence[Sequence[int]] = tokenizer(list(texts), add_special_tokens=False)["input_ids"]
        return ids

    return encode
