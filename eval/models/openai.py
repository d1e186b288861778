"""An lm-eval model behind any server that speaks OpenAI's chat completions, on the user's own network."""

from __future__ import annotations

import base64
import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from lm_eval.api.instance import Instance

from eval.benchmark_settings import BenchmarkSettings
from eval.decoding import derived_seed
from eval.model_options import OpenaiOptions
from eval.models.batched import Batch, UntemplatedModel, images_of, in_order
from eval.models.response import Response, cut_at_stop

_BUSY = (408, 429, 500, 502, 503, 504)
_LONGEST_WAIT_S = 30.0


class ServerError(RuntimeError):
    """The server cannot be reached, refuses a request or answers something else."""


class Openai(UntemplatedModel):
    """Asks `<url>/chat/completions`, a request per sample, several at a time; images go as PNG data URLs.

    The server applies its own chat template. A request carries a seed of its own, which most servers heed.
    """

    MULTIMODAL = True

    def __init__(
        self, checkpoint: Path | None, settings: BenchmarkSettings, before_batch: Callable[[], None]
    ) -> None:
        super().__init__()
        self.before_batch = before_batch
        self._options = OpenaiOptions(**settings.lm_options)
        self._batch_size = settings.batch_size
        self._headers = {"Content-Type": "application/json"}
        if self._options.key_file is not None:
            key = Path(self._options.key_file).expanduser().read_text(encoding="utf-8").strip()
            self._headers["Authorization"] = f"Bearer {key}"

    @property
    def tokenizer_name(self) -> str:
        return self._options.model

    def batches(self, requests: Sequence[Instance]) -> Iterator[Batch]:
        """Batches in the order of the requests."""
        for batch in in_order(requests, self._batch_size):
            yield batch, partial(self._generated, requests, batch)

    def _generated(self, requests: Sequence[Instance], batch: Sequence[int]) -> list[Response]:
        with ThreadPoolExecutor(self._options.workers) as pool:
            return list(pool.map(lambda index: self._response(requests[index], index), batch))

    def _response(self, request: Instance, index: int) -> Response:
        context, arguments = request.args[:2]
        body: dict[str, Any] = {
            "model": self._options.model,
            "messages": [{"role": "user", "content": _content(context, images_of(request))}],
            "max_tokens": arguments["max_gen_toks"],
            "temperature": arguments["temperature"],
            # Servers read seeds as 32-bit numbers at times.
            "seed": derived_seed(arguments["seed"], index) % 2**31,
        }
        if arguments["temperature"] > 0:
            body["top_p"] = arguments["top_p"]
        if arguments["until"]:
            body["stop"] = arguments["until"]
        answer = self._asked(body)
        try:
            (choice, *_) = answer["choices"]
            text, reason = choice["message"]["content"] or "", choice.get("finish_reason")
            tokens = (answer.get("usage") or {}).get("completion_tokens")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ServerError(
                f"{self._options.url} answered with no chat completion: {str(answer)[:200]}"
            ) from error
        truncated = None if reason is None else reason == "length"
        return Response(cut_at_stop(text, arguments["until"]), tokens=tokens, truncated=truncated)

    def _asked(self, body: Mapping[str, Any]) -> Any:
        url = f"{self._options.url.rstrip('/')}/chat/completions"
        request = urllib.request.Request(url, json.dumps(body).encode(), self._headers)
        reason = ""
        for attempt in range(self._options.retries + 1):
            if attempt:
                time.sleep(min(2.0 ** (attempt - 1), _LONGEST_WAIT_S))
            try:
                with urllib.request.urlopen(request, timeout=self._options.timeout_s) as reply:
                    return json.loads(reply.read())
            except urllib.error.HTTPError as error:
                said = " ".join(error.read(300).decode(errors="replace").split())
                reason = f"{error.code} {error.reason}: {said}"
                if error.code not in _BUSY:
                    break
            except ValueError as error:
                reason = f"its answer is not JSON: {error}"
                break
            except (OSError, http.client.HTTPException) as error:
                reason = str(error) or type(error).__name__
        raise ServerError(
            f"the server at {url} gave no answer: {reason}; check lm_options.url and lm_options.model, then "
            "start the evaluation again: finished batches are kept"
        )


def _content(context: str, images: Sequence[Any]) -> str | list[dict[str, Any]]:
    """The user's message: text, with each image where its `<image>` stands."""
    if not images:
        return context
    texts = context.split("<image>")
    if len(texts) != len(images) + 1:
        raise ValueError(f"{len(images)} images for {len(texts) - 1} places in {context[:80]!r}")
    parts: list[dict[str, Any]] = []
    for index, text in enumerate(texts):
        if index:
            data = base64.b64encode(images[index - 1].png()).decode()
            parts.append({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}})
        if text.strip():
            parts.append({"type": "text", "text": text})
    return parts
