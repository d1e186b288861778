"""Score recorded outputs of a benchmark by its protocol: counts, breakdowns, official metrics, agreement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from eval.digests import prompts_digest, protocol_digest
from eval.protocols import load_protocol
from eval.protocols.base import BenchmarkProtocol, BenchmarkQuestion, EqualAnswers
from eval.recorded_outputs import Output, OutputsError, Record, Source, match_outputs, read_records

JsonObject = dict[str, Any]


@runtime_checkable
class HasOfficialExtraction(Protocol):
    """A protocol whose official extraction is a rule, too; scored beside the protocol's own."""

    def extract_officially(self, question: BenchmarkQuestion, response: str) -> str | None: ...


@runtime_checkable
class HasCompanion(Protocol):
    """A protocol that completes its records from another official file, found beside the questions."""

    companion: str

    def with_companion(
        self, records: Sequence[Mapping[str, Any]], content: Sequence[Mapping[str, Any]]
    ) -> list[JsonObject]: ...


def score_files(
    benchmark: str,
    questions_file: Path,
    outputs_file: Path,
    source: Source,
    rule: str | None,
    partial: bool,
    equal: EqualAnswers,
) -> JsonObject:
    """The score of an outputs file, JSON-able; see `score_outputs`.

    rule: a published scoring rule of the benchmark, None for the current one.
    partial: whether questions may lack an output; they are counted in `missing` and nowhere else.
    Raises OutputsError for files that cannot be scored, ValueError for an unknown benchmark or rule.
    """
    protocol = load_protocol(benchmark)
    rule = protocol.rules[0] if rule is None else rule
    if rule not in protocol.rules:
        raise ValueError(f"{benchmark} has no rule {rule!r}; its rules: {', '.join(protocol.rules)}")
    records = read_records(questions_file)
    outputs = match_outputs(records, read_records(outputs_file), source, partial)
    questions = _questions(protocol, records, outputs, questions_file)
    answered = [questions[output.question] for output in outputs]
    return {
        "benchmark": benchmark,
        "from": source,
        "rule": rule,
        "questions": len(records),
        "missing": len(records) - len(outputs),
        **score_outputs(protocol, answered, outputs, source, rule, equal),
        "digests": {"extractor": protocol_digest(protocol), "prompt": prompts_digest(questions)},
    }


def score_outputs(
    protocol: BenchmarkProtocol,
    questions: Sequence[BenchmarkQuestion],
    outputs: Sequence[Output],
    source: Source,
    rule: str,
    equal: EqualAnswers,
) -> JsonObject:
    """The score of outputs, each of the question at its place.

    `accuracy` is correct / n, so an undecided answer is not right. Rates are of n; `truncation_rate` is None
    unless every output says whether it was cut off. `agreement` compares with recorded official verdicts and
    is None without them.
    """
    texts = [output.text for output in outputs]
    own = texts if source == "extraction" else _extracted(protocol.extract, questions, texts)
    verdicts = protocol.grade(questions, own, rule, equal)
    truncated = [output.truncated for output in outputs]
    score = {
        **_counts(protocol, questions, own, verdicts),
        "truncation_rate": None if None in truncated else _share(truncated),
        "agreement": _agreement(outputs, verdicts),
        "breakdowns": _breakdowns(questions, verdicts),
    }
    if source == "response" and isinstance(protocol, HasOfficialExtraction):
        official = _extracted(protocol.extract_officially, questions, texts)
        score["official_extraction"] = _counts(
            protocol, questions, official, protocol.grade(questions, official, rule, equal)
        )
    return score


def _extracted(
    extract: Callable[[BenchmarkQuestion, str], str | None],
    questions: Sequence[BenchmarkQuestion],
    responses: Sequence[str | None],
) -> list[str | None]:
    return [
        None if response is None else extract(question, response)
        for question, response in zip(questions, responses, strict=True)
    ]


def _counts(
    protocol: BenchmarkProtocol,
    questions: Sequence[BenchmarkQuestion],
    extractions: Sequence[str | None],
    verdicts: Sequence[bool | None],
) -> JsonObject:
    right = [verdict is True for verdict in verdicts]
    return {
        "n": len(verdicts),
        "correct": sum(right),
        "undecided": sum(verdict is None for verdict in verdicts),
        "accuracy": _share(right),
        "extraction_failure_rate": _share([not (text or "").strip() for text in extractions]),
        "metrics": protocol.metrics(questions, right),
    }


def _breakdowns(
    questions: Sequence[BenchmarkQuestion], verdicts: Sequence[bool | None]
) -> dict[str, dict[str, JsonObject]]:
    """Label -> value -> n, correct, undecided, accuracy; values by name."""
    cells: dict[str, dict[str, list[bool | None]]] = {}
    for question, verdict in zip(questions, verdicts, strict=True):
        for label, values in question.labels.items():
            for value in values:
                cells.setdefault(label, {}).setdefault(value, []).append(verdict)
    return {
        label: {
            value: {
                "n": len(of_value),
                "correct": sum(verdict is True for verdict in of_value),
                "undecided": sum(verdict is None for verdict in of_value),
                "accuracy": _share([verdict is True for verdict in of_value]),
            }
            for value, of_value in sorted(values.items())
        }
        for label, values in cells.items()
    }


def _agreement(outputs: Sequence[Output], verdicts: Sequence[bool | None]) -> JsonObject | None:
    pairs = [
        (output.verdict, verdict is True)
        for output, verdict in zip(outputs, verdicts, strict=True)
        if output.verdict is not None
    ]
    if not pairs:
        return None
    equal = [official == own for official, own in pairs]
    return {
        "n": len(pairs),
        "recorded_correct": sum(official for official, _ in pairs),
        "equal": sum(equal),
        "rate": _share(equal),
    }


def _share(flags: Sequence[bool | None]) -> float:
    return sum(flag is True for flag in flags) / len(flags)


def _questions(
    protocol: BenchmarkProtocol, records: Sequence[Record], outputs: Sequence[Output], file: Path
) -> list[BenchmarkQuestion]:
    """The questions, with labels as the outputs record them where these differ."""
    fields: list[Mapping[str, Any]] = [dict(record.fields) for record in records]
    for output in outputs:
        own = fields[output.question].get("metadata")
        if output.metadata and isinstance(own, Mapping):
            fields[output.question] = {**fields[output.question], "metadata": {**own, **output.metadata}}
    companion = file.parent / protocol.companion if isinstance(protocol, HasCompanion) else None
    try:
        if isinstance(protocol, HasCompanion) and companion is not None and companion.is_file():
            nodes = [dict(record.fields) for record in read_records(companion)]
            fields = list(protocol.with_companion(fields, nodes))
        return protocol.questions(fields)
    except OutputsError:
        raise
    except ValueError as error:
        raise OutputsError(f"{error}.", str(file), "name the official questions of this benchmark") from error
