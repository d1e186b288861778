"""Functions of the lm-eval task of GeoQA8K-R1V."""

from __future__ import annotations

from eval.protocols.geoqa8k_r1v import Geoqa8kR1v
from eval.tasks.protocol_task import ProtocolTask

_TASK = ProtocolTask(Geoqa8kR1v())

load = _TASK.load
images = _TASK.images
process_results = _TASK.process_results
