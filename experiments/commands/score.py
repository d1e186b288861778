"""Score recorded outputs of a public benchmark by its official protocol, without a judge.

fastrl score mathvista --questions testmini.jsonl.gz --outputs bard.jsonl.gz --rule paper
fastrl score wemath --questions testmini.jsonl.gz --outputs model.jsonl --format json
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from experiments.commands.text_table import text_table
from experiments.errors import UserError, did_you_mean, listed


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("benchmark", metavar="BENCHMARK", help="its name, such as mathvista")
    parser.add_argument(
        "--questions", required=True, type=Path, metavar="FILE", help="the official questions, JSONL or .gz"
    )
    parser.add_argument(
        "--outputs", required=True, type=Path, metavar="FILE", help="one output a question, JSONL or .gz"
    )
    parser.add_argument(
        "--from",
        dest="source",
        choices=("response", "extraction"),
        default="response",
        help="score responses, or the extractions recorded with them (default: response)",
    )
    parser.add_argument(
        "--rule", metavar="NAME", help="a published scoring rule: current or paper (default: the current one)"
    )
    parser.add_argument(
        "--partial", action="store_true", help="score what is there when questions have no output"
    )
    parser.add_argument("--format", choices=("json", "table"), default="table", help="how to print it")


def execute(arguments: Namespace) -> int:
    from eval.grading.open_answers import SHARED_POOL, OpenAnswerGrader
    from eval.protocols import PROTOCOLS, load_protocol
    from eval.recorded_outputs import OutputsError
    from eval.score import score_files

    benchmark = arguments.benchmark
    if benchmark not in PROTOCOLS:
        raise UserError(
            f'There is no benchmark "{benchmark}".',
            "command line",
            f"{did_you_mean(benchmark, PROTOCOLS)}benchmarks: {listed(PROTOCOLS)}",
        )
    rules = load_protocol(benchmark).rules
    rule = rules[0] if arguments.rule is None else arguments.rule
    if rule not in rules:
        raise UserError(f'{benchmark} has no rule "{rule}".', "--rule", f"its rules: {', '.join(rules)}")
    try:
        with OpenAnswerGrader(SHARED_POOL) as grader:
            score = score_files(
                benchmark,
                arguments.questions,
                arguments.outputs,
                arguments.source,
                rule,
                arguments.partial,
                grader.equal,
            )
    except OutputsError as error:
        raise UserError(error.what, error.where, error.way_out) from error
    print(json.dumps(score, indent=2, ensure_ascii=False) if arguments.format == "json" else _table(score))
    return 0


def _table(score: dict[str, Any]) -> str:
    parts = [_summary(score), _metrics(score["metrics"])]
    if "official_extraction" in score:
        official = score["official_extraction"]
        parts += [
            "by the official extraction:",
            text_table(*_counts(official)),
            _metrics(official["metrics"]),
        ]
    parts += [
        text_table(
            [label, "n", "correct", "undecided", "accuracy"],
            [
                [
                    value,
                    str(cell["n"]),
                    str(cell["correct"]),
                    str(cell["undecided"]),
                    _percent(cell["accuracy"]),
                ]
                for value, cell in values.items()
            ],
        )
        for label, values in score["breakdowns"].items()
    ]
    digests = [f"{name} sha256 {digest}" for name, digest in score["digests"].items()]
    return "\n\n".join(filter(None, [*parts, "\n".join(digests)]))


def _summary(score: dict[str, Any]) -> str:
    head = f"{score['benchmark']}, from {score['from']}, rule {score['rule']}"
    lines = [head, text_table(*_counts(score))]
    if score["missing"]:
        lines.append(
            f"{score['missing']} of {score['questions']} questions have no output and are not counted"
        )
    truncated = score["truncation_rate"]
    lines.append(f"truncated: {'unknown' if truncated is None else _percent(truncated)}")
    agreement = score["agreement"]
    if agreement is not None:
        lines.append(
            f"agreement with the recorded verdicts: {agreement['equal']} of {agreement['n']} "
            f"({_percent(agreement['rate'])}); they count {agreement['recorded_correct']} correct"
        )
    return "\n".join(lines)


def _counts(counts: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    row = [str(counts["n"]), str(counts["correct"]), str(counts["undecided"])]
    rates = [_percent(counts["accuracy"]), _percent(counts["extraction_failure_rate"])]
    return ["n", "correct", "undecided", "accuracy", "extraction failures"], [[*row, *rates]]


def _metrics(metrics: dict[str, float | int]) -> str:
    if not metrics:
        return ""
    rows = [
        [name, str(value) if isinstance(value, int) else _percent(value)] for name, value in metrics.items()
    ]
    return text_table(["metric", "value"], rows)


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"
