"""MathVision (MATH-V): letters and values, scored by rules alone, as its official evaluation does.

An answer is right when it equals the letter or the value of the right option: as a lower-case string, as a
list, or as a number at two decimals. Numbers are read by the project's own evaluator of numeric LaTeX.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from eval.extraction.boxed import last_boxed
from eval.extraction.choices import stated_choice
from eval.extraction.final_answer import final_answer, stated_answer
from eval.grading.bounded_arithmetic import Number
from eval.grading.latex_number import NumberList, latex_value
from eval.grading.normalise import normalise_answer, option_letter, split_label, split_unit
from eval.protocols.base import BenchmarkQuestion, EqualAnswers
from eval.protocols.record_fields import images_field, text_field

LETTERS = "ABCDE"
INSTRUCTION = (
    'Please solve the problem step by step and put your answer in one "\\boxed{}". '
    'If it is a multiple choice question, only one letter is allowed in the "\\boxed{}".'
)
DECIMALS = 2
SHORT_RESPONSE = 200
"""A response of at most this many characters may be the bare answer."""


class MathVision:
    """The protocol of the test (3040) and testmini (304) splits; both have the same fields.

    Labels: subject, level, and the two together, named like the cells of the published scores.
    """

    rules = ("current",)

    def questions(self, records: Iterable[Mapping[str, Any]]) -> list[BenchmarkQuestion]:
        return [_question(record, index) for index, record in enumerate(records)]

    def extract(self, question: BenchmarkQuestion, response: str) -> str | None:
        """The last box; else the option or the answer that the response states, or is.

        Where there are options, a letter after "the answer is" counts before a box without a letter.
        """
        box = last_boxed(response)
        answer = None if box is None else _answer_text(box)
        options = question.details["options"]
        if options and (not answer or option_letter(answer) is None):
            stated = stated_answer(response)
            letter = None if stated is None else option_letter(normalise_answer(stated))
            if letter is None and not answer:
                letter = stated_choice(response, options, question.details["question"])
            answer = letter or answer
        if not answer:
            found = final_answer(response) or _bare_answer(response)
            answer = None if found is None else _answer_text(found)
        return answer or None

    def grade(
        self,
        questions: Sequence[BenchmarkQuestion],
        extractions: Sequence[str | None],
        rule: str,
        equal: EqualAnswers,
    ) -> list[bool | None]:
        """Needs neither a judge nor `equal`."""
        return [
            extraction is not None and _is_right(question, extraction)
            for question, extraction in zip(questions, extractions, strict=True)
        ]

    def metrics(
        self, questions: Sequence[BenchmarkQuestion], correct: Sequence[bool]
    ) -> dict[str, float | int]:
        return {}


def _question(record: Mapping[str, Any], index: int) -> BenchmarkQuestion:
    where = f"MathVision record {record.get('id', f'number {index + 1}')!r}"
    options = record.get("options")
    if not isinstance(options, list | tuple) or not all(isinstance(option, str) for option in options):
        raise ValueError(f"{where}: field 'options' is {options!r}, but should be a list of texts")
    answer = text_field(record, "answer", where)
    if options and (len(options) > len(LETTERS) or answer not in tuple(LETTERS[: len(options)])):
        raise ValueError(f"{where}: answer {answer!r} is none of its {len(options)} options")
    text = text_field(record, "question", where)
    subject, level = text_field(record, "subject", where), f"level{text_field(record, 'level', where)}"
    lettered = [f"({letter}) {option}" for letter, option in zip(LETTERS, options, strict=False)]
    if list(options) == list(LETTERS):
        lettered = []  # the options are in the image
    return BenchmarkQuestion(
        id=text_field(record, "id", where),
        prompt="\n".join(["<image>", INSTRUCTION, text, *lettered]),
        answer=answer,
        images=images_field(record, "image", where)[:1],
        labels={"subject": (subject,), "level": (level,), "subject_level": (f"{subject}_{level}",)},
        details={"options": list(options), "question": text},
    )


def _answer_text(text: str) -> str:
    """A boxed or stated answer without text commands, units and what an `=` follows, as officially."""
    answer = normalise_answer(text.replace("\\boxed{", "") if last_boxed(text) is None else text)
    letter = option_letter(answer)
    return letter if letter is not None else split_unit(answer.rpartition("=")[2].strip()).value


def _bare_answer(response: str) -> str | None:
    """The response itself when it is an option, or a number or list of numbers, and nothing else."""
    if len(response) > SHORT_RESPONSE:
        return None
    answer = normalise_answer(response)
    label = split_label(answer)[0]
    if option_letter(answer) is not None or latex_value(split_unit(answer).value) is not None:
        return answer
    return label


def _is_right(question: BenchmarkQuestion, extraction: str) -> bool:
    options = question.details["options"]
    value = options[LETTERS.index(question.answer)] if options else ""
    answer = extraction.lower().strip()
    if not answer:
        return False
    golds = [gold for gold in (question.answer.lower().strip(), value.lower().strip()) if gold]
    if answer in golds:
        return True
    gold_values = [parsed for gold in golds if (parsed := _value(gold)) is not None]
    parsed = _value(answer) if gold_values else None
    return parsed is not None and any(_equal_values(gold, parsed) for gold in gold_values)


def _equal_values(gold: Number | NumberList, answer: Number | NumberList) -> bool:
    if isinstance(gold, NumberList) or isinstance(answer, NumberList):
        return gold == answer
    return _rounded(gold) == _rounded(answer)


def _rounded(value: Number) -> Number:
    try:
        return round(float(value), DECIMALS)
    except OverflowError:
        return value


def _value(text: str) -> Number | NumberList | None:
    value = latex_value(_leading_expression(text.replace("$", "").strip()))
    # The official reader takes no list between dollar signs, and none with semicolons.
    return None if isinstance(value, NumberList) and ("$" in text or ";" in text) else value


def _leading_expression(text: str) -> str:
    """The text up to a brace that closes nothing or a full stop: the official reader stops there too."""
    depth = 0
    for index, character in enumerate(text):
        if character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
            if depth < 0:
                return text[:index]
        elif character == "." and not text[index + 1 : index + 2].isdigit():
            return text[:index]
    return text
