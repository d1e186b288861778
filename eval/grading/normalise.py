"""One form for the many ways to write an open answer: LaTeX cosmetics, separators, units, option labels.

Every function takes linear time and treats the text as text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from eval.extraction.boxed import last_boxed

_FULL_WIDTH = {chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
_INVISIBLE_SPANS = ((0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x2069))
_INVISIBLE_CHARACTERS = {
    chr(code): "" for first, last in _INVISIBLE_SPANS for code in range(first, last + 1)
} | dict.fromkeys("\x00\u00ad\ufeff", "")
_SYMBOLS = {
    "−": "-",
    "–": "-",
    "×": "\\times ",
    "÷": "/",
    "·": "\\cdot ",
    "⋅": "\\cdot ",
    "π": "\\pi ",
    "∞": "\\infty ",
    "√": "\\sqrt ",
    "±": "\\pm ",
    "∪": "\\cup ",
    "≤": "\\le ",
    "≥": "\\ge ",
    "º": "°",
    "∘": "°",
    "˚": "°",
    "。": ".",
    "、": ",",
    "¼": " 1/4",
    "½": " 1/2",
    "¾": " 3/4",
    **{character: f"^{digit}" for digit, character in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
}
_TRANSLATION = str.maketrans(_FULL_WIDTH | _INVISIBLE_CHARACTERS | _SYMBOLS)
_DEGREE = re.compile(
    r"\^?\s*+(?:\{\s*+\\circ\s*+\}|\\circ(?![A-Za-z]))|\^\s*+°|\^\s*+\{\s*+°\s*+\}|\\degree(?![A-Za-z])"
)
_TEXT = re.compile(r"\\(?:text|textbf|textit|textrm|mbox|mathrm|mathbf|mathit|operatorname)\s*+\{([^{}]*+)\}")
_INVISIBLE = re.compile(
    r"\\(?:left|right|displaystyle|limits|bigl?|bigr|Bigl?|Bigr)(?![A-Za-z])|(?<!\\)\\[!()\[\]$]|\$|\{,\}(?=[0-9])|\*\*"
)
_SPACE = re.compile(r"(?<!\\)\\[,;: ]|~|\\q?quad(?![A-Za-z])|\s++")
_FRACTION = re.compile(r"\\[dtc]frac(?![A-Za-z])")
_THOUSANDS = re.compile(r"([^0-9.,()\[\]{}]*+)([0-9]{1,3}(?:, ?[0-9]{3})++)(?![0-9])([^,()\[\]]*+)")
_MIXED = re.compile(r"(?<![0-9./^_])([0-9]++) +([0-9]++) ?/ ?([0-9]++)(?![0-9.^])")
_SMALL_SCRIPT = re.compile(r"([_^])\{([A-Za-z0-9])\}")
_LABEL = re.compile(
    r"\(?([A-H])(?:\)|[.:])[.:]? ?(?=\S)|(?:[Oo]ption|[Cc]hoice|[Aa]nswer) \(?([A-H])\)?[.:]? ?"
)
_LETTER = re.compile(
    r"\(?([A-H])\)?[.:]?|\(([a-h])\)[.:]?|(?:[Oo]ption|[Cc]hoice|[Aa]nswer) \(?([A-H])\)?[.:]?"
)
_ASSIGNMENT = re.compile(
    r"([A-Za-z](?:_?[A-Za-z0-9])?|\\[a-z]++|∠ ?[A-Z]{1,3}) ?(?:=|\\in(?![A-Za-z])|\\approx|≈) ?"
)

_UNIT_NAMES: dict[str, str] = {
    "mm": "mm millimeter millimeters millimetre millimetres 毫米",
    "cm": "cm centimeter centimeters centimetre centimetres 厘米",
    "dm": "dm decimeter decimeters decimetre decimetres 分米",
    "m": "m meter meters metre metres 米",
    "km": "km kilometer kilometers kilometre kilometres 千米 公里",
    "nautical mile": "海里 nauticalmile nauticalmiles nmi",
    "in": "in inch inches",
    "ft": "ft foot feet",
    "yd": "yd yard yards",
    "mile": "mile miles mi 英里",
    "s": "s sec secs second seconds 秒",
    "min": "min mins minute minutes 分钟",
    "h": "h hr hrs hour hours 小时",
    "day": "day days 天",
    "year": "year years 年 岁",
    "g": "g gram grams 克",
    "kg": "kg kilogram kilograms 千克 公斤",
    "L": "L liter liters litre litres 升",
    "mL": "mL ml milliliter milliliters 毫升",
    "°": "° degree degrees deg 度",
    "$": "dollar dollars USD 元 美元 yuan",
    "cent": "cent cents",
    "unit": "unit units",
    "km/h": "km/h kph",
    "m/s": "m/s",
    "mph": "mph",
    "item": "个 只 人 条 块 本 people students balls coins",
}
_UNITS = {name: unit for unit, names in _UNIT_NAMES.items() for name in names.split()}
_UNIT = re.compile(
    r"(?P<power_word>square|sq\.?|cubic|平方|立方)? ?"
    rf"(?P<name>{'|'.join(sorted(map(re.escape, _UNITS), key=len, reverse=True))})"
    r"(?: ?\^ ?\{?(?P<power>[23])\}?\^?)?\.?"
)
_POWERS = {"square": 2, "sq": 2, "sq.": 2, "平方": 2, "cubic": 3, "立方": 3}
_LONGEST_UNIT = 28


@dataclass(frozen=True)
class Quantity:
    """A value as text and the unit after it, such as "cm^2"; None without one."""

    value: str
    unit: str | None


def normalise_answer(text: str) -> str:
    """The answer without what does not change it: dollar signs, boxes, text commands, spacing, separators.

    Degrees are written `°`, mixed numbers `(1+1/2)`, fractions `\\frac`, roots `\\sqrt`, minus signs `-`.
    """
    text = " ".join(text.translate(_TRANSLATION).split())
    if "boxed" in text:
        box = last_boxed(text)
        text = text if box is None else box
    text = text.replace("\\%", "%")
    text = _DEGREE.sub("°", _FRACTION.sub(r"\\frac", text))
    text = _TEXT.sub(r" \1 ", text)
    text = _SPACE.sub(" ", _INVISIBLE.sub("", text)).strip().rstrip(".,;: ")
    if thousands := _THOUSANDS.fullmatch(text):
        before, number, after = thousands.groups()
        text = before + number.replace(",", "").replace(" ", "") + after
    text = _MIXED.sub(r"(\1+\2/\3)", text)
    return _SMALL_SCRIPT.sub(r"\1\2", text)


def compact(text: str) -> str:
    """A normalised answer as the key of string equality: no spaces; words in lower case."""
    key = text.replace(" ", "")
    return key.lower() if len(key) > 1 and key.isalpha() else key


def option_letter(text: str) -> str | None:
    """The option that a normalised answer names: "C", "(C)", "option C"; None when it is something else."""
    match = _LETTER.fullmatch(text)
    if match is None:
        return None
    return next(letter for letter in match.groups() if letter).upper()


def split_label(text: str) -> tuple[str | None, str]:
    """The letter of an option label before the answer and the rest: "C. 12" is ("C", "12")."""
    match = _LABEL.match(text)
    if match is None:
        return None, text
    return match.group(1) or match.group(2), text[match.end() :]


def split_assignment(text: str) -> tuple[str | None, str]:
    """The variable that a normalised answer gives a value to, and the value: "x = 5" is ("x", "5")."""
    match = _ASSIGNMENT.match(text)
    if match is None or "=" in text[match.end() :]:
        return None, text
    return match.group(1).replace(" ", ""), text[match.end() :]


def split_unit(text: str) -> Quantity:
    """The quantity of a normalised answer: "8 cm^{2}" is ("8", "cm^2").

    A unit stands at the end, after a digit, a closing bracket, pi or infinity. A letter that is a unit (m, s,
    g, h) is taken as one even where it may be a variable.
    """
    for start in range(max(1, len(text) - _LONGEST_UNIT), len(text)):
        match = _UNIT.fullmatch(text, start)
        before = text[max(0, start - 8) : start].rstrip()
        if match is None or not before or not _ends_value(before):
            continue
        power = match["power"] or _POWERS.get(match["power_word"] or "", "")
        unit = _UNITS[match["name"]]
        return Quantity(text[:start].rstrip(), f"{unit}^{power}" if power else unit)
    return Quantity(text, None)


def _ends_value(before: str) -> bool:
    return before[-1] in "0123456789})].%" or before.endswith(("\\pi", "\\infty"))
