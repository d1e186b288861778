"""Functions of the lm-eval task of MathVista."""

from __future__ import annotations

from eval.protocols.mathvista import MathVista
from eval.tasks.protocol_task import ProtocolTask

_TASK = ProtocolTask(MathVista())

load = _TASK.load
images = _TASK.images
process_results = _TASK.process_results
