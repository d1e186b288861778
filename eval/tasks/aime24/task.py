"""Functions of the lm-eval task of AIME 2024."""

from __future__ import annotations

from eval.protocols.aime import Aime
from eval.tasks.protocol_task import ProtocolTask

_TASK = ProtocolTask(Aime())

load = _TASK.load
process_results = _TASK.process_results
