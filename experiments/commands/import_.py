"""Turn logs of a run made with EasyR1, TRL or verl into a run of a study, to compare and tabulate it.

  fastrl import easyr1 LOGDIR study=mine method=grpo model=qwen2_5_vl_7b dataset=geometry3k seed=0
  fastrl import trl LOGDIR study=mine method=grpo model=qwen3 dataset=math seed=0 \\
    rollouts=8 questions=64 updates=4
  fastrl import verl metrics.jsonl study=mine label="GRPO, verl" method=grpo ... hardware="4 x H20"
  fastrl import verl train.log ...                 what the console showed, kept in a file; EasyR1 too

Then: fastrl report study=mine. Times are compared only between runs that name the same hardware=.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from functools import partial
from pathlib import Path

from experiments.commands.arguments import add_words, refuse_overrides, results_root, sorted_words
from experiments.errors import UserError, did_you_mean, listed

_REQUIRED = ("method", "model", "dataset", "seed")
_SIZES = ("rollouts", "questions", "updates")
_OPTIONAL = ("label", "tau", "hardware")


def add_arguments(parser: ArgumentParser) -> None:
    add_words(
        parser, "TRAINER LOGDIR study=NAME method= model= dataset= seed=, and what the log does not tell"
    )


def execute(arguments: Namespace) -> int:
    words = sorted_words(arguments.words, bare=True)
    own = {
        key: value for key, value in map(_pair, words.overrides) if key in (*_REQUIRED, *_SIZES, *_OPTIONAL)
    }
    refuse_overrides(words, ("paths", *own), "an imported run has only the settings that are named here")
    from analysis.foreign import READERS, easyr1
    from analysis.foreign.import_run import ImportedRun, import_run
    from analysis.foreign.log import Reader, StepSizes
    from fastrl.engines.easyr1.step_records import step_record

    if len(words.bare) != 2:
        raise UserError(
            "Name the trainer and its log folder.", "command line", f"trainers: {listed(READERS)}"
        )
    trainer, folder = words.bare[0], Path(words.bare[1]).expanduser()
    readers: dict[str, Reader] = {**READERS, "easyr1": partial(easyr1.read, own_record=step_record)}
    if trainer not in readers:
        way_out = f"{did_you_mean(trainer, readers)}trainers: {listed(readers)}"
        raise UserError(f'There is no trainer "{trainer}" to import from.', "command line", way_out)
    absent = [key for key in _REQUIRED if not own.get(key)] + ([] if words.study else ["study"])
    if absent:
        raise UserError(f"{absent[0]}= is missing.", "command line", f"add {absent[0]}=...")
    given = [key for key in _SIZES if key in own]
    if given and len(given) < len(_SIZES):
        raise UserError(
            f"Only {', '.join(given)} is given.", "command line", f"give all of {', '.join(_SIZES)}"
        )
    sizes = StepSizes(*(_whole(own, key) for key in _SIZES)) if given else None
    run = ImportedRun(
        study=words.study or "",
        label=own.get("label", own["method"]),
        method=own["method"],
        model=own["model"],
        dataset=own["dataset"],
        seed=_whole(own, "seed"),
        tau=_number(own["tau"]) if own.get("tau") else None,
        hardware=own.get("hardware", ""),
    )
    written = import_run(results_root(words.overrides), trainer, run, readers[trainer](folder, sizes))
    print(f"{written}\nnext: fastrl report study={run.study}")
    return 0


def _pair(word: str) -> tuple[str, str]:
    key, _, value = word.partition("=")
    return key, value


def _whole(own: dict[str, str], key: str) -> int:
    if not own[key].isdigit():
        raise UserError(f"{key}={own[key]} is no whole number.", "command line", f"for example {key}=8")
    return int(own[key])


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UserError(f"tau={text} is no number.", "command line", "for example tau=0.8") from None
