"""Protocols of public benchmarks: prompts, answer extraction, official scoring. One file per benchmark."""

from __future__ import annotations

import importlib

from eval.protocols.base import BenchmarkProtocol

PROTOCOLS: dict[str, str] = {
    "aime24": "eval.protocols.aime:Aime",
    "aime25": "eval.protocols.aime:Aime",
    "geometry3k": "eval.protocols.geometry3k:Geometry3k",
    "geoqa8k_r1v": "eval.protocols.geoqa8k_r1v:Geoqa8kR1v",
    "math": "eval.protocols.math_competition:MathCompetition",
    "math500": "eval.protocols.math_competition:MathCompetition",
    "mathverse": "eval.protocols.mathverse:MathVerse",
    "mathvision": "eval.protocols.mathvision:MathVision",
    "mathvision_testmini": "eval.protocols.mathvision:MathVision",
    "mathvista": "eval.protocols.mathvista:MathVista",
    "wemath": "eval.protocols.wemath:WeMath",
}
"""Benchmark -> its protocol, imported when it is used."""


def load_protocol(benchmark: str) -> BenchmarkProtocol:
    """The protocol of a benchmark. Raises ValueError for an unknown one."""
    if benchmark not in PROTOCOLS:
        raise ValueError(f"unknown benchmark {benchmark!r}; known: {', '.join(sorted(PROTOCOLS))}")
    module, _, name = PROTOCOLS[benchmark].partition(":")
    protocol: BenchmarkProtocol = getattr(importlib.import_module(module), name)()
    return protocol
