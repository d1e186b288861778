"""Predict, from recorded rollouts, what methods keep, sample and cost, without training.

  fastrl replay results/runs/RUN --tau 0.6,0.8,1
  fastrl replay results/runs/GRPO_RUN --costs results/runs/GRPO_RUN results/runs/CPPO_RUN --output FOLDER
  fastrl replay dump.jsonl --format trl --tokenizer NAME --profile h20_qwen2_5_vl_7b --methods cppo
  fastrl replay --profile h20_qwen2_5_vl_7b --kept 3.03 --sampled 7.34

A run records rollouts with training.record_rollouts_every=1. Speed is against GRPO with all rollouts.
"""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.commands.arguments import add_config_folders
from experiments.errors import UserError

if TYPE_CHECKING:
    from fastrl.replay.costs import StageCosts


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "words",
        nargs="*",
        metavar="SOURCE",
        help="a run's folder, or files of another trainer and columns.FIELD=NAME where columns differ",
    )
    parser.add_argument(
        "--tau", type=_numbers, default=[0.8], metavar="T,T", help="FastRL's thresholds (0.8)"
    )
    parser.add_argument("--methods", type=_names, default=[], metavar="M,M", help="further methods to replay")
    costs = parser.add_mutually_exclusive_group()
    costs.add_argument(
        "--costs",
        nargs="+",
        type=Path,
        metavar="RUN",
        help="runs to measure costs from (default: the source)",
    )
    costs.add_argument("--profile", metavar="NAME", help="published costs, of conf/replay/profile")
    parser.add_argument("--clock", choices=("cpu", "wall"), default="cpu", help="seconds of --costs (cpu)")
    parser.add_argument(
        "--format", default="easyr1", metavar="NAME", help="columns of files, of conf/replay/format"
    )
    parser.add_argument("--tokenizer", metavar="NAME", help="of the policy, for files that hold text alone")
    parser.add_argument("--steps-per-epoch", type=_positive, metavar="N", help="of files, for ARS")
    parser.add_argument(
        "--divisor", type=_positive, metavar="N", help="alignment (default: the run's, else 1)"
    )
    parser.add_argument(
        "--subsample",
        choices=("first", "random"),
        default="first",
        help="which trajectories stand for a smaller group (first)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of random choices (0)")
    parser.add_argument("--kept", type=float, metavar="K", help="without a source: kept per question")
    parser.add_argument("--sampled", type=float, metavar="G", help="without a source: sampled per question")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="write replay.{json,csv,png,pdf} there")
    add_config_folders(parser)


def execute(arguments: Namespace) -> int:
    if not arguments.words:
        return _from_counts(arguments)
    from experiments.offline.record import replay_csv, replay_record, replay_text
    from experiments.offline.scenarios import scenarios
    from experiments.offline.sources import recorded_rollouts
    from fastrl.replay.offline import replay
    from fastrl.replay.predict import predict

    if arguments.kept is not None or arguments.sampled is not None:
        raise UserError(
            "--kept and --sampled are for costs alone.", "command line", "leave them or the source out"
        )
    recorded = recorded_rollouts(
        arguments.words, arguments.format, arguments.tokenizer, arguments.steps_per_epoch
    )
    costs = _costs(arguments)
    n = recorded.largest_group()
    chosen = scenarios(recorded, n, arguments.tau, arguments.methods, arguments.divisor, arguments.config_dir)
    try:
        outcomes = replay(recorded.steps(), chosen, recorded.course, arguments.subsample, arguments.seed)
        predictions = predict(
            costs, outcomes[0].mean_step(), [outcome.mean_step() for outcome in outcomes[1:]]
        )
    except ValueError as error:
        raise UserError(
            f"The recorded rollouts can't be replayed: {error}.", ", ".join(arguments.words), "", 1
        ) from None
    record = replay_record(
        source=recorded.label,
        notes=recorded.notes,
        subsample=arguments.subsample,
        seed=arguments.seed,
        costs=costs,
        outcomes=outcomes,
        predictions=predictions,
    )
    print(replay_text(record))
    if arguments.output:
        from analysis.offline.replay_figure import replay_figure
        from experiments.atomic_files import write_file, write_json

        write_json(arguments.output / "replay.json", record)
        write_file(arguments.output / "replay.csv", replay_csv(record))
        for file_format, content in replay_figure(record, ("png", "pdf")).items():
            write_file(arguments.output / f"replay.{file_format}", content)
        print(f"\nwritten: {arguments.output}/replay.{{json,csv,png,pdf}}")
    return 0


def _costs(arguments: Namespace) -> StageCosts:
    from experiments.offline.costs import measured_costs, named_profile
    from experiments.run_directory import RunDirectory

    if arguments.profile:
        return named_profile(arguments.profile).costs
    runs = [RunDirectory(path) for path in arguments.costs or [Path(arguments.words[0])]]
    if not all(run.steps_path.is_file() for run in runs):
        raise UserError(
            "No stage costs are known.", str(runs[0].path), "name runs with --costs RUN, or a --profile NAME"
        )
    return measured_costs(runs, arguments.clock)


def _from_counts(arguments: Namespace) -> int:
    """Predict from mean counts per question alone."""
    from experiments.offline.costs import named_profile
    from experiments.offline.record import prediction_text
    from fastrl.replay.predict import means_of_counts, predict

    if not arguments.profile or arguments.kept is None or arguments.sampled is None:
        raise UserError(
            "No source is named.",
            "command line",
            "name a run's folder or files; or give --profile, --kept and --sampled",
        )
    profile = named_profile(arguments.profile)
    try:
        baseline, method = (
            means_of_counts(label, profile.questions, sampled, kept)
            for label, sampled, kept in (
                ("all kept", profile.rollouts, profile.rollouts),
                ("pruned", arguments.sampled, arguments.kept),
            )
        )
        predictions = predict(profile.costs, baseline, [method])
    except ValueError as error:
        raise UserError(f"Nothing can be predicted: {error}.", "command line", "") from None
    rows = [
        {**vars(prediction), "kept_per_question": prediction.kept, "sampled_per_question": prediction.sampled}
        for prediction in predictions
    ]
    print(prediction_text(rows, profile.costs.unit))
    print(f"\ncosts: {profile.costs.source}, {profile.costs.name}; {profile.costs.note}")
    return 0


def _numbers(text: str) -> list[float]:
    return [float(word) for word in text.split(",") if word]


def _names(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ArgumentTypeError(f"{number} is not at least 1")
    return number
