"""An lm-eval model that gives recorded outputs: to score what another system said, without generating."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lm_eval.api.instance import Instance

from eval.benchmark_settings import BenchmarkSettings
from eval.datasets.records import DataError, read_records
from eval.model_options import ReplayOptions
from eval.models.batched import Batch, UntemplatedModel
from eval.models.response import Response


class Replay(UntemplatedModel):
    """Answers a question's i-th request with its i-th record. A question's images are not read."""

    MULTIMODAL = True

    def __init__(
        self, checkpoint: Path | None, settings: BenchmarkSettings, before_batch: Callable[[], None]
    ) -> None:
        super().__init__()
        self.before_batch = before_batch
        self._options = ReplayOptions(**settings.lm_options)
        self._path = Path(self._options.outputs).expanduser()
        self._outputs: dict[str, list[Response]] = {}
        for number, record in enumerate(read_records(self._path, self._path.name), start=1):
            question, response = (
                self._field(record, number, "id_field"),
                self._field(record, number, "response_field"),
            )
            self._outputs.setdefault(str(question), []).append(_response(record, str(response)))

    @property
    def tokenizer_name(self) -> str:
        return self._path.name

    def batches(self, requests: Sequence[Instance]) -> Iterator[Batch]:
        """All requests at once. Raises DataError, naming it, for a question with too few records."""
        yield list(range(len(requests))), lambda: self._recorded(requests)

    def _recorded(self, requests: Sequence[Instance]) -> list[Response]:
        seen: Counter[str] = Counter()
        responses = []
        for request in requests:
            question = request.doc["id"]
            recorded = self._outputs.get(question) or self._outputs.get(question.rpartition("/")[2], [])
            if seen[question] >= len(recorded):
                raise DataError(
                    f"{self._path} has {len(recorded)} outputs of question {question!r}, more are asked for; "
                    "record the missing ones, or lower samples"
                )
            responses.append(recorded[seen[question]])
            seen[question] += 1
        return responses

    def _field(self, record: Mapping[str, Any], number: int, option: str) -> Any:
        name = getattr(self._options, option)
        if record.get(name) is None:
            raise DataError(
                f"{self._path}, record {number}: no {name!r}; it has {', '.join(record)}: "
                f"set lm_options.{option} to one of them"
            )
        return record[name]


def _response(record: Mapping[str, Any], text: str) -> Response:
    tokens, truncated = record.get("tokens"), record.get("truncated")
    return Response(
        text,
        tokens=tokens if isinstance(tokens, int) else None,
        truncated=truncated if isinstance(truncated, bool) else None,
    )
