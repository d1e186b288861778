"""The data card of a prepared set, JSON for programs and Markdown for people: the paper's Table 6."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

CARD_FILE = "data_card.json"
CARD_PAGE = "data_card.md"


def card_json(card: Mapping[str, Any]) -> str:
    """The card as indented JSON."""
    return json.dumps(card, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def card_page(card: Mapping[str, Any]) -> str:
    """The card as a Markdown page."""
    lines = [f"# {card['label']}", "", f"Prepared by `fastrl data prepare {card['name']}`.", ""]
    lines += [
        "| split | questions | images | bytes | repeated | sha256 of the file |",
        "|---|---|---|---|---|---|",
    ]
    for split, facts in card["splits"].items():
        lines.append(
            f"| {split} | {facts['questions']:,} | {facts['images']:,} | {facts['bytes']:,} "
            f"| {facts['repeated']:,} | `{facts['sha256']}` |"
        )
    lines += ["", f"- questions in all: {card['questions']:,}", f"- licence: {card['licence']}", ""]
    lines += ["| source | revision | files | bytes | sha256 over the files |", "|---" * 5 + "|"]
    for source in card["sources"]:
        lines.append(
            f"| {source['repository']} | {source['revision']} | {source['files']:,} | {source['bytes']:,} "
            f"| `{source['sha256']}` |"
        )
    if card["notes"]:
        lines += ["", "| note | value |", "|---|---|"]
        lines += [
            f"| {name} | {json.dumps(value, ensure_ascii=False)} |" for name, value in card["notes"].items()
        ]
    lines += ["", "`repeated` counts questions whose problem, answer and images stood before in the set.", ""]
    return "\n".join(lines)
