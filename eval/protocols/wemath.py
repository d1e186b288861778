"""We-Math: lettered options, four-dimensional metrics; extraction by our rules and by the official one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from eval.extraction.choices import stated_choice
from eval.protocols.base import BenchmarkQuestion, EqualAnswers
from eval.protocols.record_fields import images_field, text_field
from eval.protocols.wemath_metrics import wemath_metrics

LETTERS = "ABCDEFGH"
CONCEPTS_FILE = "knowledge_structure_nodes.json"
"""The official file of concepts, beside the questions; without it there are no domain scores."""

_INSTRUCTION = (
    "Now, we require you to solve a multiple-choice math question. "
    "Please briefly describe your thought process and provide the final answer(option)."
)
_FORMAT = (
    "Regarding the format, please answer following the template below, "
    "and be sure to include two <> symbols:\n"
    "<Thought process>: <<your thought process>> <Answer>: <<your option>>"
)
_OPTION = re.compile(r"(?:^|;)\s*([A-H])\s*[.．]")
_KEY = re.compile(r"(2|3)steps_(1|2|3|multi)")
_DROPPED = str.maketrans("", "", "><:.")
_DOMAIN = "domain"


class WeMath:
    """The protocol of testmini: 1,740 questions in 525 groups of two or three sub-steps and their composite.

    Labels: step (1 for sub-steps; 2 or 3 for composites of so many) and, when the records went through
    `with_companion`, the domain of each sub-step's concept.
    """

    rules = ("current",)
    companion = CONCEPTS_FILE

    def with_companion(
        self, records: Iterable[Mapping[str, Any]], concepts: Iterable[Mapping[str, Any]]
    ) -> list[dict[str, Any]]:
        """Records with the domain of their concept, from the content of `knowledge_structure_nodes.json`.

        Raises ValueError for a node without the fields root1 and root2.
        """
        domains = {}
        for number, node in enumerate(concepts, start=1):
            where = f"{CONCEPTS_FILE}, node number {number}"
            path = [node[name] for name in ("root1", "root2", "root3", "root4") if node.get(name)]
            if len(path) < 2:
                raise ValueError(f"{where}: needs the fields root1 and root2, has {sorted(node)}")
            domains[path[-1]] = f"{path[0]}: {path[1]}"
        return [{**record, _DOMAIN: domains.get(record.get("knowledge concept"))} for record in records]

    def questions(self, records: Iterable[Mapping[str, Any]]) -> list[BenchmarkQuestion]:
        return [
            _question(record, f"We-Math record number {number}") for number, record in enumerate(records, 1)
        ]

    def extract(self, question: BenchmarkQuestion, response: str) -> str | None:
        """The letter of the option that a response states, anywhere and in any form."""
        options: Mapping[str, str] = question.details["options"]
        return stated_choice(
            response, [options.get(letter, "") for letter in LETTERS], question.details["question"]
        )

    def extract_officially(self, question: BenchmarkQuestion, response: str) -> str | None:
        """The first character after the last "Answer", brackets, colons and periods aside, if it is a letter.

        So `\\boxed{B}` and "The answer is B" have no answer, as in the official evaluation.
        """
        answer = response.rpartition("Answer")[2].translate(_DROPPED).strip()[:1]
        return answer if answer and answer in LETTERS else None

    def grade(
        self,
        questions: Sequence[BenchmarkQuestion],
        extractions: Sequence[str | None],
        rule: str,
        equal: EqualAnswers,
    ) -> list[bool | None]:
        """Whether an extraction is the gold letter."""
        return [
            extraction is not None and extraction.strip() == question.answer
            for question, extraction in zip(questions, extractions, strict=True)
        ]

    def metrics(
        self, questions: Sequence[BenchmarkQuestion], correct: Sequence[bool]
    ) -> dict[str, float | int]:
        """See `wemath_metrics`: over the groups whose questions are all there."""
        return wemath_metrics(questions, correct)


def _question(record: Mapping[str, Any], where: str) -> BenchmarkQuestion:
    group, key = text_field(record, "ID", where), text_field(record, "key", where)
    where = f"We-Math record {group!r} with key {key!r}"
    step = _KEY.fullmatch(key)
    if step is None:
        raise ValueError(f"{where}: the key should be 2steps_1, 2steps_multi, 3steps_3 or the like")
    text, option = text_field(record, "question", where), text_field(record, "option", where)
    answer = text_field(record, "answer", where).strip()
    if answer not in tuple(LETTERS):
        raise ValueError(f"{where}: answer {answer!r} is no letter from A to H")
    composite = step[2] == "multi"
    domain = record.get(_DOMAIN)
    domains = {_DOMAIN: (str(domain),)} if domain and not composite else {}
    return BenchmarkQuestion(
        id=f"{group}/{step[2]}",
        prompt=f"<image>\n{_INSTRUCTION}\nQuestion: {text}\nOption: {option}\n{_FORMAT}",
        answer=answer,
        images=images_field(record, "image_path", where)[:1],
        labels={"step": (step[1] if composite else "1",), **domains},
        details={
            "question": text,
            "options": _options(option),
            "group": group,
            "sub_steps": int(step[1]),
            "composite": composite,
            "concept": text_field(record, "knowledge concept", where),
        },
    )


def _options(text: str) -> dict[str, str]:
    """Letter -> text of "A. 10 cm;B. 15 cm; ...", which may hold further semicolons and empty parts."""
    starts = list(_OPTION.finditer(text))
    ends = [start.start() for start in starts[1:]] + [len(text)]
    return {start[1]: text[start.end() : end].strip(" ;.") for start, end in zip(starts, ends, strict=True)}
