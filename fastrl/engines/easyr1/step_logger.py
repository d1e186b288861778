"""A logger among EasyR1's own that hands every step's record on, also across restarts.

EasyR1's file logger starts its file anew at every start, so that a resumed run has lost its history there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from verl.utils.logger import logger as easyr1_loggers

from fastrl.engines.easyr1.step_records import is_step, step_record, validation_record

StepSink = Callable[[dict[str, Any]], None]


def register_step_logger(on_step: StepSink, last_step: int) -> None:
    """Make `fastrl` a name for EasyR1's `trainer.logger`; its records go to `on_step`.

    EasyR1 logs the validation after the last step by itself, under that step's number again: the last step's
    record waits for it, and the two are one.
    """

    class StepLogger(easyr1_loggers.Logger):  # type: ignore[misc]
        def __init__(self, config: dict[str, Any]) -> None:
            self._waiting: dict[str, Any] | None = None

        def log(self, data: dict[str, Any], step: int) -> None:
            if not is_step(data):
                record = validation_record(data, step, time.time())
                on_step(record if self._waiting is None else {**self._waiting, **record})
                self._waiting = None
                return
            record = step_record(data, step, time.time())
            if step == last_step and "val/accuracy" not in record:
                self._waiting = record
            else:
                on_step(record)

    easyr1_loggers.LOGGERS["fastrl"] = StepLogger
