"""Functions of the lm-eval tasks of MathVision."""

from __future__ import annotations

from eval.protocols.mathvision import MathVision
from eval.tasks.protocol_task import ProtocolTask

_TASK = ProtocolTask(MathVision())

load = _TASK.load
images = _TASK.images
process_results = _TASK.process_results
