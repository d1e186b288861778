"""An lm-eval model that answers from a script, so that a benchmark's right results are known beforehand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.model import LM


class ScriptedModel(LM):  # type: ignore[misc]
    """Gives the i-th repeat of a prompt the i-th response of its script; keeps what it was asked."""

    def __init__(self, script: Mapping[str, Sequence[str]]) -> None:
        super().__init__()
        self.asked: list[str] = []
        self.arguments: list[dict[str, Any]] = []
        self._script = script

    def generate_until(self, requests: Sequence[Instance], disable_tqdm: bool = True) -> list[str]:
        repeat: Counter[str] = Counter()
        responses = []
        for request in requests:
            prompt = request.args[0]
            responses.append(self._script[prompt][repeat[prompt]])
            repeat[prompt] += 1
            self.asked.append(prompt)
            self.arguments.append(dict(request.args[1]))
        return responses

    def loglikelihood(self, requests: Sequence[Instance]) -> list[tuple[float, bool]]:
        raise NotImplementedError

    def loglikelihood_rolling(self, requests: Sequence[Instance]) -> list[float]:
        raise NotImplementedError
