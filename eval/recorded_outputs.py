"""Recorded outputs of a model: read from files, matched with the questions that they answer."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Source = Literal["response", "extraction"]

TEXT_FIELDS: dict[Source, tuple[str, ...]] = {
    "response": ("response", "model_output", "output"),
    "extraction": ("extraction", "model_answer", "extracted_answer"),
}
"""Where the text to be scored is, by what it is; the first field that a record has."""
VERDICT_FIELDS = ("true_false", "correct", "is_correct")
"""Where a recorded official verdict is, if any; null counts as wrong."""
IDENTITIES: tuple[tuple[str, ...], ...] = (
    ("question_id",),
    ("pid",),
    ("id",),
    ("question number",),
    ("ID", "key"),
    ("ID",),
    ("sample_index",),
    ("problem_index", "problem_version"),
    ("unique_id",),
    ("image_path", "question"),
    ("problem",),
    ("question",),
)
"""Fields that can name a question, the surest first: used when each question has its own values of them."""

_GZIP = b"\x1f\x8b"
_LISTED_UNDER = "results"


class OutputsError(ValueError):
    """Something in a file that its owner can mend: what is wrong, where, and the way out."""

    def __init__(self, what: str, where: str, way_out: str) -> None:
        super().__init__(what, where, way_out)
        self.what = what
        self.where = where
        self.way_out = way_out

    def __str__(self) -> str:
        return f"{self.what} ({self.where}); {self.way_out}"


@dataclass(frozen=True)
class Record:
    """An object of a file, and where it stands: "line 3" or "record 3"."""

    fields: Mapping[str, Any]
    where: str


@dataclass(frozen=True)
class Output:
    """What a model answered to one question.

    question: index of the question. text: a response or a recorded extraction; None for a null one.
    verdict: the recorded official one, None when there is none. truncated: None when unknown.
    metadata: the question's labels as the outputs record them, {} when they do not.
    """

    question: int
    text: str | None
    verdict: bool | None
    truncated: bool | None
    metadata: Mapping[str, Any]


def read_records(path: Path) -> list[Record]:
    """The objects of a JSONL file, of a JSON list (bare or under "results") or of an object; gzipped or not.

    Raises OutputsError naming file and line for a missing, empty, undecodable or malformed file.
    """
    where = str(path)
    if not path.is_file():
        raise OutputsError("There is no such file.", where, "name an existing .jsonl or .jsonl.gz file")
    try:
        content = path.read_bytes()
        text = (gzip.decompress(content) if content.startswith(_GZIP) else content).decode("utf-8-sig")
    except (EOFError, gzip.BadGzipFile, UnicodeDecodeError, OSError) as error:
        raise OutputsError(
            f"The file cannot be read: {error}.", where, "fetch or write it again; it should be UTF-8 text"
        ) from error
    records = _listed(text, where)
    if records is None:
        numbered = enumerate(text.split("\n"), start=1)
        records = [
            Record(_parsed_line(line, f"{where}, line {number}"), f"{where}, line {number}")
            for number, line in numbered
            if line.strip()
        ]
    if not records:
        raise OutputsError("The file holds no records.", where, "it should hold one JSON object a line")
    return records


def match_outputs(
    questions: Sequence[Record], outputs: Sequence[Record], source: Source, partial: bool
) -> list[Output]:
    """Outputs with the questions that they answer, in the order of the questions.

    Raises OutputsError for an output whose question is unknown or answered before, for one without the text
    to be scored, and, unless `partial`, when a question has no output.
    """
    matched: dict[int, Output] = {}
    flat = [_flat(output.fields) for output in outputs]
    identity = _identity([question.fields for question in questions], flat, outputs[0].where)
    index_of = {_values(question.fields, identity): index for index, question in enumerate(questions)}
    for output, fields in zip(outputs, flat, strict=True):
        name = _named(fields, identity)
        index = index_of.get(_values(fields, identity))
        if index is None:
            raise OutputsError(
                f"No question has {name}.",
                output.where,
                "score these outputs with the questions that they were made for",
            )
        if index in matched:
            raise OutputsError(
                f"A second output for the question with {name}.",
                output.where,
                "keep one output for each question; score samples of one question as files of their own",
            )
        matched[index] = _output(index, fields, source, output.where)
    if len(matched) < len(questions) and not partial:
        missing = next(index for index in range(len(questions)) if index not in matched)
        raise OutputsError(
            f"{len(questions) - len(matched)} of {len(questions)} questions have no output, "
            f"the first with {_named(questions[missing].fields, identity)}.",
            questions[missing].where,
            "add their outputs, or score what is there with --partial",
        )
    return [matched[index] for index in sorted(matched)]


def _listed(text: str, where: str) -> list[Record] | None:
    """The records of one JSON document, None when the text is no such document."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    listed = document
    if isinstance(document, dict):
        by_id = all(isinstance(fields, dict) for fields in document.values())
        listed = list(document.values()) if by_id else document.get(_LISTED_UNDER)
    if not isinstance(listed, list):
        return None
    for number, fields in enumerate(listed, start=1):
        if not isinstance(fields, dict):
            raise OutputsError(
                f"Record {number} is {type(fields).__name__}, no object.", where, "write objects"
            )
    return [Record(fields, f"{where}, record {number}") for number, fields in enumerate(listed, start=1)]


def _parsed_line(line: str, where: str) -> dict[str, Any]:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise OutputsError(
            f"The line is no JSON: {error}.", where, "mend or drop it; a cut last line means a cut download"
        ) from error
    if not isinstance(fields, dict):
        raise OutputsError(
            f"The line is {type(fields).__name__}, no object.", where, "write one object a line"
        )
    return fields


def _flat(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """An output's fields with those of the question nested in it, if any."""
    question = fields.get("question")
    return {**fields, **question} if isinstance(question, Mapping) else fields


def _identity(
    questions: Sequence[Mapping[str, Any]], outputs: Sequence[Mapping[str, Any]], where: str
) -> tuple[str, ...]:
    for names in IDENTITIES:
        if all(name in fields for fields in (*questions, *outputs) for name in names):
            values = {_values(fields, names) for fields in questions}
            if len(values) == len(questions):
                return names
    shared = " or ".join(
        "+".join(names) for names in IDENTITIES if all(name in questions[0] for name in names)
    )
    raise OutputsError(
        "The outputs do not say which questions they answer.",
        where,
        f"give each output the question's {shared or 'id'}, each question values of its own",
    )


def _values(fields: Mapping[str, Any], names: Sequence[str]) -> tuple[str, ...]:
    return tuple(str(fields[name]) for name in names)


def _named(fields: Mapping[str, Any], names: Sequence[str]) -> str:
    return " and ".join(f"{name} {str(fields[name])[:80]!r}" for name in names)


def _output(question: int, fields: Mapping[str, Any], source: Source, where: str) -> Output:
    metadata = fields.get("metadata")
    return Output(
        question,
        _text(fields, source, where),
        _verdict(fields, where),
        _truncated(fields),
        metadata if isinstance(metadata, Mapping) else {},
    )


def _text(fields: Mapping[str, Any], source: Source, where: str) -> str | None:
    name = next((name for name in TEXT_FIELDS[source] if name in fields), None)
    if name is None:
        raise OutputsError(
            f"The output has no {source}.",
            where,
            f"give it one of the fields {', '.join(TEXT_FIELDS[source])}",
        )
    text = fields[name]
    if isinstance(text, list | dict):
        raise OutputsError(f"Field {name!r} is no text.", where, "write one text for each question")
    return None if text is None else str(text)


def _verdict(fields: Mapping[str, Any], where: str) -> bool | None:
    name = next((name for name in VERDICT_FIELDS if name in fields), None)
    verdict = None if name is None else fields[name]
    if verdict is not None and verdict not in (True, False):
        raise OutputsError(
            f"Field {name!r} is {verdict!r}, but should be true, false or null.",
            where,
            "mend or drop the field",
        )
    return None if name is None else bool(verdict)


def _truncated(fields: Mapping[str, Any]) -> bool | None:
    """From `truncated` or `finish_reason`, None without them."""
    if isinstance(fields.get("truncated"), bool):
        return bool(fields["truncated"])
    reason = fields.get("finish_reason")
    return reason == "length" if isinstance(reason, str) else None
