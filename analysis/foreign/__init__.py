"""Logs of runs of other trainers as run records. Adding a trainer: a file with `read`, and a line here."""

from __future__ import annotations

from analysis.foreign import easyr1, trl, verl
from analysis.foreign.log import Reader

READERS: dict[str, Reader] = {"easyr1": easyr1.read, "trl": trl.read, "verl": verl.read}
