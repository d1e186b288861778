"""Compare token similarity with the similarity of policy gradients, in pairs of equal advantage (Figure 5).

  fastrl correlate results/runs/RUN
  fastrl correlate results/runs/RUN --steps 1:8 --model results/models/POLICY --output FOLDER
  fastrl correlate dump.jsonl --format trl --model NAME --gradients head

A run records rollouts with training.record_rollouts_every=1. The model should be near the one that sampled
them: by default the run's final policy, with the newest steps. It may see images; a file's question holds its
prompt, as text alone.
"""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.errors import UserError

if TYPE_CHECKING:
    from experiments.offline.gradient_pairs import GradientPairs, GroupSample
    from experiments.offline.sources import RecordedRollouts
    from fastrl.engines.reference.policy import Policy

_IMAGE_CACHE = 256 << 20
"""Bytes of read images, and of what the vision tower makes of them, that are kept."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "words",
        nargs="+",
        metavar="SOURCE",
        help="a run's folder, or files of another trainer and columns.FIELD=NAME where columns differ",
    )
    parser.add_argument(
        "--model", metavar="NAME", help="a policy's folder or name (default: checkpoints/final)"
    )
    parser.add_argument(
        "--steps", type=_step_range, default=(None, None), metavar="A:B", help="recorded steps"
    )
    parser.add_argument("--questions", type=_positive, default=256, metavar="N", help="groups at most (256)")
    parser.add_argument(
        "--gradients",
        choices=("exact", "head"),
        default="exact",
        help="of all trained parameters (exact), or of the output layer in a random sketch, for large models",
    )
    parser.add_argument(
        "--sketch", type=_positive, default=256, metavar="K", help="width of the sketch (256)"
    )
    parser.add_argument(
        "--check",
        type=_count,
        default=16,
        metavar="N",
        help="groups to measure the sketch's error on (16); 0 where exact gradients do not fit in memory",
    )
    parser.add_argument(
        "--temperature", type=float, metavar="T", help="of sampling (default: the run's, else 1)"
    )
    parser.add_argument(
        "--epsilon", type=float, default=1e-4, help="advantages closer than it are equal (1e-4)"
    )
    parser.add_argument(
        "--chunk", type=_positive, default=8, metavar="N", help="gradients of a text policy at once (8)"
    )
    parser.add_argument(
        "--resamples", type=_positive, default=1000, metavar="N", help="of the bootstrap (1000)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of random choices (0)")
    parser.add_argument("--device", default="cpu", help="of the model (cpu)")
    parser.add_argument(
        "--format", default="trl", metavar="NAME", help="columns of files, of conf/replay/format"
    )
    parser.add_argument(
        "--tokenizer", metavar="NAME", help="for files that hold text alone (default: the model's)"
    )
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="write correlate.{json,png,pdf} there")


def execute(arguments: Namespace) -> int:
    from experiments.offline.gradient_pairs import last_groups
    from experiments.offline.sources import recorded_rollouts

    recorded = recorded_rollouts(
        arguments.words, arguments.format, arguments.tokenizer or arguments.model, None
    )
    model = arguments.model or _final_policy(arguments.words[0], recorded)
    first, last = arguments.steps
    try:
        groups, constant = last_groups(recorded.steps(), first, last, arguments.questions, arguments.seed)
    except ValueError as error:
        raise UserError(
            f"The recorded rollouts can't be compared: {error}.", ", ".join(arguments.words), "", 1
        ) from None
    pairs = _pairs(arguments, recorded, model, groups)
    _report(arguments, recorded, model, groups, constant, pairs)
    return 0


def _final_policy(source: str, recorded: RecordedRollouts) -> str:
    from experiments.run_directory import RunDirectory

    folder = RunDirectory(Path(source)).final_checkpoint
    if recorded.config is None or not folder.is_dir():
        raise UserError(
            "No model is named.", source, "name the policy that sampled the rollouts: --model NAME"
        )
    return str(folder)


def _pairs(
    arguments: Namespace, recorded: RecordedRollouts, model: str, groups: Sequence[GroupSample]
) -> GradientPairs:
    from experiments.compose import compose_cell
    from experiments.offline.gradient_pairs import gradient_pairs
    from experiments.offline.prompts import file_prompts, run_prompts
    from fastrl.engines.reference.policy import PolicyError
    from fastrl.method import build_method

    config = recorded.config
    method = config["method"] if config else compose_cell(["method=grpo"])["method"]
    temperature = arguments.temperature or (config["training"]["temperature"] if config else 1.0)
    try:
        policy = _policy(arguments, recorded, model)
        names = {group.rollouts.question_ids[0] for group in groups}
        prompt_of = run_prompts(policy, config, names) if config else file_prompts(policy)
        _check_words(policy, arguments.words[0], recorded, groups)
        return gradient_pairs(
            policy,
            prompt_of,
            groups,
            objective=build_method(method).objective,
            epsilon=arguments.epsilon,
            temperature=temperature,
            gradients=arguments.gradients,
            sketch_width=arguments.sketch,
            checked_groups=arguments.check,
            chunk=arguments.chunk,
            seed=arguments.seed,
        )
    except (PolicyError, ValueError) as error:
        raise UserError(f"The gradients can't be computed: {error}.", model, "", 1) from None


def _policy(arguments: Namespace, recorded: RecordedRollouts, model: str) -> Policy:
    """The policy, which trains the parameters that the run has trained."""
    from fastrl.engines.reference.policy import load_policy, with_tower

    policy = load_policy(model, arguments.device, "float32")
    engine = recorded.config["engine"] if recorded.config else {}
    # Where nothing is said of a tower there are no images, and it has no gradient.
    return with_tower(policy, frozen=engine.get("freeze_vision_tower", True), cache_bytes=_IMAGE_CACHE)


def _check_words(
    policy: Policy, source: str, recorded: RecordedRollouts, groups: Sequence[GroupSample]
) -> None:
    """Refuse a model to which the recorded tokens are other words, as far as the run's own policy tells."""
    import numpy as np
    from transformers import AutoTokenizer

    from experiments.run_directory import RunDirectory

    folder = RunDirectory(Path(source)).final_checkpoint
    if recorded.config is None or not folder.is_dir():
        return
    ids = np.unique(np.concatenate([group.rollouts.tokens for group in groups])).tolist()
    own = AutoTokenizer.from_pretrained(folder).convert_ids_to_tokens(ids)
    for number, meant, read in zip(ids, own, policy.tokenizer.convert_ids_to_tokens(ids), strict=True):
        if meant != read:
            raise UserError(
                f"The token {number} is {meant!r} to the run's policy, and {read!r} to this model.",
                "--model",
                "name a model with the tokenizer of the policy that sampled; by default it is the final one",
            )


def _report(
    arguments: Namespace,
    recorded: RecordedRollouts,
    model: str,
    groups: Sequence[GroupSample],
    constant: int,
    found: GradientPairs,
) -> None:
    from analysis.offline.correlation import Pairs, correlate, subsets
    from experiments.offline.correlation_record import correlation_record, correlation_text

    pairs = Pairs(found.question, found.jaccard, found.cosine, found.duplicate, found.correct)
    correlations = {
        name: correlate(part, arguments.resamples, arguments.seed) for name, part in subsets(pairs).items()
    }
    record = correlation_record(
        source=recorded.label,
        model=Path(model).name if Path(model).is_dir() else model,
        steps=(groups[0].step, groups[-1].step),
        gradients=arguments.gradients,
        sketch=arguments.sketch if arguments.gradients == "head" else None,
        constant_groups=constant,
        pairs=found,
        correlations={name: _plain(value) for name, value in correlations.items()},
    )
    print(correlation_text(record))
    if arguments.output:
        from analysis.offline.correlation_figure import correlation_figure
        from experiments.atomic_files import write_file, write_json

        write_json(arguments.output / "correlate.json", record)
        for file_format, content in correlation_figure(record, pairs, ("png", "pdf")).items():
            write_file(arguments.output / f"correlate.{file_format}", content)
        print(f"\nwritten: {arguments.output}/correlate.{{json,png,pdf}}")


def _plain(correlation: Any) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(correlation)


def _step_range(text: str) -> tuple[int | None, int | None]:
    first, colon, last = text.partition(":")
    low = int(first) if first else None
    return (low, int(last) if last else None) if colon else (low, low)


def _positive(text: str) -> int:
    return _at_least(1, text)


def _count(text: str) -> int:
    return _at_least(0, text)


def _at_least(least: int, text: str) -> int:
    number = int(text)
    if number < least:
        raise ArgumentTypeError(f"{number} is not at least {least}")
    return number
