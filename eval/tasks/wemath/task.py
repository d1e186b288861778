"""Functions of the lm-eval task of We-Math."""

from __future__ import annotations

from eval.protocols.wemath import WeMath
from eval.tasks.protocol_task import ProtocolTask

_TASK = ProtocolTask(WeMath())

load = _TASK.load
images = _TASK.images
process_results = _TASK.process_results
