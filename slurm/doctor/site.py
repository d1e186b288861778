"""The Slurm site: commands, accounting, limits, and whether its nodes have what the settings ask for."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass

from experiments.cluster_settings import JobShape, SlurmSettings, TrainShape
from slurm.client import SlurmError, call, controller_setting
from slurm.doctor.check import Check, ok

_COMMANDS = ("sbatch", "squeue", "scontrol", "scancel", "sinfo")
_UNITS = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0 * 1024.0}
_NO_LIMIT = float("inf")


@dataclass(frozen=True)
class _Nodes:
    """One line of `sinfo`: `count` nodes that are alike. minutes: the partition's limit. memory: MB."""

    count: int
    partition: str
    minutes: float
    cpus: int
    memory: float
    gpus: int


def site_checks(settings: SlurmSettings) -> Iterator[Check]:
    missing = [name for name in _COMMANDS if shutil.which(name) is None]
    if missing:
        found = f"no {', '.join(missing)} on the PATH"
        yield Check("Slurm", "fail", found, "log in to the cluster, or rehearse here: fastrl cluster up")
        return
    try:
        yield ok("Slurm", call(["sbatch", "--version"]).strip())
        call(["scontrol", "ping"])
        yield _accounting()
        yield _array_size(settings)
        nodes = _nodes(call(["sinfo", "-h", "-e", "-o", "%D|%P|%l|%c|%m|%G"]))
        yield from _partition(settings, nodes)
    except SlurmError as error:
        yield Check("Slurm controller", "fail", error.what, error.way_out)


def _accounting() -> Check:
    kind = controller_setting("AccountingStorageType") or ""
    way_out = (
        "status falls back on the queue and on run directories; states of long ended jobs may be missing"
    )
    if "none" in kind:
        return Check("accounting (sacct)", "warn", "off", way_out)
    try:
        call(["sacct", "-n", "-X", "-o", "JobID"])
    except SlurmError as error:
        return Check("accounting (sacct)", "warn", error.what, way_out)
    return ok("accounting (sacct)", "on")


def _array_size(settings: SlurmSettings) -> Check:
    size = controller_setting("MaxArraySize") or "0"
    wanted = settings.max_array_size
    if wanted is not None and wanted > int(size):
        return Check(
            "MaxArraySize",
            "fail",
            f"{size}, but cluster.slurm.max_array_size is {wanted}",
            "set it to null: arrays are then as large as the site allows",
        )
    return ok("MaxArraySize", f"{size}; larger studies are sent in several arrays")


def _partition(settings: SlurmSettings, nodes: list[_Nodes]) -> Iterator[Check]:
    names = sorted({each.partition.rstrip("*") for each in nodes})
    default = next((each.partition.rstrip("*") for each in nodes if each.partition.endswith("*")), None)
    for wanted in (settings.partition or default or "").split(","):
        own = [each for each in nodes if each.partition.rstrip("*") == wanted]
        if not own:
            found = f'there is no "{wanted}"; there are {", ".join(names)}'
            yield Check("partition", "fail", found, "correct cluster.slurm.partition")
            continue
        for kind in ("train", "evaluate", "report"):
            yield _fit(f"{wanted}: {kind}", kind, getattr(settings.shapes, kind), own)


def _fit(name: str, kind: str, shape: JobShape, nodes: list[_Nodes]) -> Check:
    key = f"cluster.slurm.shapes.{kind}"
    longest = max(each.minutes for each in nodes)
    if shape.minutes > longest:
        found = f"{shape.minutes} minutes asked for, at most {longest:.0f} allowed"
        return Check(name, "fail", found, f"lower {key}.minutes: jobs resume")
    memory = _megabytes(shape.memory) if shape.memory else 0.0
    fitting = [
        each
        for each in nodes
        if each.cpus >= shape.cpus and each.memory >= memory and each.gpus >= shape.gpus
    ]
    asked = f"{shape.gpus} GPUs, {shape.cpus} CPUs, {shape.memory or 'default'} memory, {shape.minutes} min"
    if not fitting:
        largest = ", ".join(f"{each.gpus} GPUs {each.cpus} CPUs {each.memory / 1024:.0f}G" for each in nodes)
        return Check(name, "fail", f"no node has {asked}; there are nodes with {largest}", f"lower {key}")
    count = sum(each.count for each in fitting)
    if isinstance(shape, TrainShape) and shape.nodes > 1:
        asked = f"{shape.nodes} nodes, each with {asked}"
        if shape.nodes > count:
            return Check(name, "fail", f"{asked}, but {count} have that", "lower engine.nodes")
    return ok(name, asked)


def _nodes(shown: str) -> list[_Nodes]:
    nodes = []
    for line in shown.splitlines():
        count, partition, limit, cpus, memory, gres = line.split("|", 5)
        gpus = sum(int(count) for count in re.findall(r"gpu(?::[^:,(]+)?:(\d+)", gres))
        nodes.append(
            _Nodes(int(count), partition, _minutes(limit), _number(cpus), float(_number(memory)), gpus)
        )
    return nodes


def _minutes(limit: str) -> float:
    """Minutes of `7-00:00:00`, `1:00:00`, `30:00` or `infinite`."""
    days, _, clock = limit.rpartition("-")
    if not re.fullmatch(r"[\d:]+", clock):
        return _NO_LIMIT
    parts = [int(part) for part in clock.split(":")]
    hours, minutes, _ = ([0] * (3 - len(parts)) + parts)[-3:]
    return (int(days or 0) * 24 + hours) * 60 + minutes


def _number(text: str) -> int:
    """`64+` stands for at least 64."""
    return int(text.rstrip("+"))


def _megabytes(memory: str) -> float:
    unit = memory[-1]
    return float(memory[:-1]) * _UNITS[unit] if unit in _UNITS else float(memory)
