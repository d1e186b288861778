"""Two hundred answers that a hostile or broken model may write, made by rule."""

from __future__ import annotations

from collections.abc import Iterator

N_ANSWERS = 200

_CODE = (
    "__import__('os').system('touch {marker}')",
    "open('{marker}', 'w').close()",
    "eval(\"open('{marker}', 'w')\")",
    "exec(\"import pathlib; pathlib.Path('{marker}').touch()\")",
    "(lambda: open('{marker}', 'w'))()",
    "().__class__.__bases__[0].__subclasses__()",
    "[x for x in open('{marker}', 'w')]",
    "\\input{/etc/passwd}",
    "\\write18{touch {marker}}",
    "$(touch {marker})",
    "`touch {marker}`; touch {marker}",
    "<script>fetch('/')</script>",
)
_TOWERS = (
    "9^{9^{9}}",
    "9**9**9**9",
    "x + 9^{9^{9}}",
    "(9^{99})^{9999999}",
    "10^{10^{10}} + y",
    "\\sqrt[9^{9}]{9^{9^{9}}}",
    "99999!",
    "((9!)!)!",
    "\\binom{9999999}{4999999}",
    "\\sum_{k=1}^{10^{9}} k^{k}",
    "\\prod_{k=1}^{99999} (x+k)",
    "(x+y+z)^{9999}",
    "\\int_0^{\\infty} \\frac{\\sin x^{x^{x}}}{x} dx",
    "2^{2^{2^{2^{2^{2}}}}}x",
    "1e999999999",
    "0.1^{-999999999}",
)
_MARKS = (
    "\x00",
    "1\x002",
    "\u202e21\u202c",
    "\u200f12\u200e",
    "12\u2066\u2069",
    "\ufeff12",
    "\ud800",
    "12\udfff",
    "é" * 300,
    "\U0001f600" * 100,
    "١٢",
    "①②",
    "\r\n\t\v\f",
    "\x1b[2J12",
)
_NESTED = (
    ("{", "}"),
    ("(", ")"),
    ("[", "]"),
    ("\\{", "\\}"),
    ("\\frac{1}{", "}"),
    ("\\sqrt{", "}"),
    ("x^{", "}"),
    ("\\left(", "\\right)"),
    ("\\text{", "}"),
    ("\\boxed{", "}"),
    ("-", ""),
    ("|", "|"),
)
_REPEATED = (
    "9",
    "{",
    "}",
    "\\",
    "$",
    ",",
    "x+",
    "1/",
    "\\frac",
    " ",
    "°",
    "1,000",
    "(1,",
    "=",
    "\\cup (1,2)",
    "A. ",
    "\n",
)


def adversarial_answers(marker: str) -> list[str]:
    """The answers; those that are code would write a file at `marker`."""
    answers = list(dict.fromkeys(_answers(marker)))
    return answers[:N_ANSWERS]


def _answers(marker: str) -> Iterator[str]:
    for code in _CODE:
        yield code.replace("{marker}", marker)
        yield f"\\text{{{code.replace('{marker}', marker)}}}"
    yield from _TOWERS
    yield from _MARKS
    yield "{" * 100_000
    yield "{" * 50_000 + "}" * 50_000
    for depth in (2, 9, 60, 400, 3_000, 20_000):
        for opening, closing in _NESTED:
            yield f"{opening * depth}1{closing * depth}"
    for count in (3, 50, 900, 9_000, 60_000):
        for piece in _REPEATED:
            yield f"1{piece * count}"
