"""Functions of the lm-eval task of Geometry3K."""

from __future__ import annotations

from eval.protocols.geometry3k import Geometry3k
from eval.tasks.protocol_task import ProtocolTask

_TASK = ProtocolTask(Geometry3k())

load = _TASK.load
images = _TASK.images
process_results = _TASK.process_results
