"""Evaluate a checkpoint, a server or recorded outputs on benchmarks; print the scores.

  fastrl evaluate checkpoint=FOLDER benchmark=aime24,math500
  fastrl evaluate checkpoint=RUN_ID benchmark=mathvista data.root=/data/MathVista device=cpu
  fastrl evaluate benchmark=mathvision lm=openai lm_options.url=http://node7:8000/v1 lm_options.model=NAME

Other words are settings of every named benchmark (`fastrl show` lists them), `data.` those of its data set;
`~decodings.t1` leaves a decoding out.
Results go to the run's own folder, or to output=FOLDER (default: evaluations/ in the results folder). The
same command goes on after Ctrl-C or a crash.
"""

from __future__ import annotations

import contextlib
import hashlib
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.commands.arguments import add_config_folders, add_words, results_root
from experiments.errors import UserError

_OWN = ("checkpoint", "benchmark", "seed", "output", "paths.root")
_OPTION_GROUPS = ("openai", "replay", "vllm", "vllm-vlm")


@dataclass(frozen=True)
class Target:
    """What is evaluated, and where its results go.

    checkpoint: a folder, None for a server or a file. locks: a lock file for each benchmark; of a run's own
    results it is the stage's.
    """

    checkpoint: Path | None
    outputs: Mapping[str, Path]
    locks: tuple[Path, ...]
    seed: int


def add_arguments(parser: ArgumentParser) -> None:
    add_words(parser, "checkpoint=FOLDER or RUN_ID, benchmark=NAMES, and settings of the benchmarks")
    add_config_folders(parser)


def execute(arguments: Namespace) -> int:
    from eval.evaluate import evaluate_all
    from experiments.compose import compose_cell
    from experiments.locks import LockHeld, LockLost, acquire

    own, settings = _sorted(arguments.words)
    names = [name for name in own.get("benchmark", "").strip("[]").split(",") if name]
    if not names:
        raise UserError("No benchmark is named.", "command line", f"add benchmark=NAME; {_known(arguments)}")
    overrides = [f"benchmark=[{','.join(names)}]", *(word for word in _overrides(names, settings))]
    benchmarks = compose_cell(overrides, arguments.config_dir)["benchmarks"]
    target = _target(own, names, benchmarks)
    with contextlib.ExitStack() as stack:
        try:
            locks = [stack.enter_context(acquire(path)) for path in target.locks]
        except LockHeld as held:
            raise UserError(
                f"It is being evaluated already: {held}.", str(held.path), "wait for it", 1
            ) from None

        def alive() -> bool:
            for lock in locks:
                lock.touch()
            return False

        try:
            results = evaluate_all(
                checkpoint=target.checkpoint,
                benchmarks=benchmarks,
                outputs=target.outputs,
                seed=target.seed,
                stop_requested=alive,
                announce=lambda line: print(line, flush=True),
            )
        except LockLost as lost:
            raise UserError(
                f"Another process has taken the evaluation over: {lost}.",
                "",
                "wait for its results, or run the same command again once it has ended",
                1,
            ) from None
        except (ImportError, RuntimeError, ValueError) as error:
            what = str(error)
            raise UserError(what[:1].upper() + what[1:], "", "", exit_code=1) from error
    print(_scores(results))
    for path in target.outputs.values():
        print(path / "results.json")
    return 0


def _sorted(words: Sequence[str]) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """The command's own words by key, and the benchmarks' settings in order."""
    own: dict[str, str] = {}
    settings = []
    for word in words:
        key, equals, value = word.partition("=")
        if not equals and not word.startswith("~"):
            raise UserError(
                f'"{word}" is not of the form key=value.', "command line", "for example benchmark=aime24"
            )
        if key in _OWN:
            own[key] = value
        else:
            settings.append((key, value))
    return own, settings


def _overrides(names: Sequence[str], settings: Sequence[tuple[str, str]]) -> list[str]:
    """Hydra overrides that give every benchmark the settings."""
    words = []
    for name in names:
        place = f"benchmarks.{name}"
        lm = dict(settings).get("lm")
        if lm in _OPTION_GROUPS:
            words.append(f"+lm_options@{place}.lm_options={lm}")
        for key, value in settings:
            # `lm_options` starts empty, and a split or a decoding may be new.
            added = "++" if key.startswith(("lm_options.", "decodings.")) else ""
            setting = key.removeprefix("~")
            if setting.startswith("data."):
                setting = f"dataset.{setting.removeprefix('data.')}"
            dropped = key.startswith("~")
            words.append(f"~{place}.{setting}" if dropped else f"{added}{place}.{setting}={value}")
    return words


def _target(own: Mapping[str, str], names: Sequence[str], benchmarks: Mapping[str, Any]) -> Target:
    from eval.model_options import WITHOUT_CHECKPOINT
    from experiments.run_directory import RunDirectory

    root = results_root([f"paths.root={own['paths.root']}"] if "paths.root" in own else [])
    seed = _seed(own["seed"]) if "seed" in own else None
    where = Path(own["output"]).expanduser() if "output" in own else None
    named = own.get("checkpoint")
    if named is None:
        needing = [name for name in names if benchmarks[name]["lm"] not in WITHOUT_CHECKPOINT]
        if needing:
            raise UserError(
                f"{needing[0]} is asked of lm={benchmarks[needing[0]]['lm']}, and no checkpoint is named.",
                "command line",
                "add checkpoint=FOLDER or checkpoint=RUN_ID, or choose lm=openai or lm=replay",
            )
        options = benchmarks[names[0]]["lm_options"]
        source = options.get("model") or Path(options["outputs"]).name
        folder = where or root / "evaluations" / _file_name(source, str(sorted(options.items())))
        outputs = {name: folder / name for name in names}
        return Target(None, outputs, _beside(outputs), seed or 0)
    checkpoint = Path(named).expanduser()
    run = RunDirectory(root / "runs" / named)
    if not checkpoint.is_dir() and run.config_path.is_file():
        outputs = {name: where / name if where else run.evaluation_path(name) for name in names}
        own_locks = tuple(run.lock_path(f"evaluate-{name}") for name in names)
        locks = own_locks if where is None else _beside(outputs)
        return Target(run.final_checkpoint, outputs, locks, run.config()["seed"] if seed is None else seed)
    folder = where or root / "evaluations" / _file_name(checkpoint.resolve().name, str(checkpoint.resolve()))
    outputs = {name: folder / name for name in names}
    return Target(checkpoint, outputs, _beside(outputs), seed or 0)


def _beside(outputs: Mapping[str, Path]) -> tuple[Path, ...]:
    """Lock files beside the folders of results."""
    return tuple(folder.with_name(f"{folder.name}.lock") for folder in outputs.values())


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise UserError(f"seed={text} is not a whole number.", "command line", "for example seed=0")
    return int(text)


def _file_name(name: str, identity: str) -> str:
    readable = "".join(letter if letter.isalnum() or letter in "._-" else "-" for letter in name)
    return f"{readable}-{hashlib.sha256(identity.encode()).hexdigest()[:8]}"


def _known(arguments: Namespace) -> str:
    from experiments.config_tree import CONF, group_options

    return f"benchmarks: {', '.join(group_options([CONF, *arguments.config_dir], 'benchmark'))}"


def _scores(results: Mapping[str, Mapping[str, Any]]) -> str:
    from experiments.commands.text_table import text_table

    header = [
        "benchmark",
        "decoding",
        "questions",
        "accuracy",
        "95% interval",
        "undecided",
        "no answer",
        "cut",
    ]
    rows = []
    for name, result in results.items():
        for decoding, entry in result["decodings"].items():
            low, high = entry["intervals"]["accuracy"]
            rates = [entry[key] for key in ("undecided_rate", "extraction_failure_rate", "truncation_rate")]
            rows.append(
                [
                    name,
                    decoding,
                    str(result["n_questions"]),
                    f"{entry['metrics']['accuracy']:.1%}",
                    f"{low:.1%} to {high:.1%}",
                    *("unknown" if rate is None else f"{rate:.1%}" for rate in rates),
                ]
            )
    return text_table(header, rows)
