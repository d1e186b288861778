"""What a cluster config holds (`experiments/conf/cluster/*.yaml`). Imports the standard library alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET = re.compile(r"(?i)token|passw|secret|api_?key|credential")
_OPTION = re.compile(r"[a-z][a-z0-9-]*")
_MEMORY = re.compile(r"[0-9]+[KMGT]?")
_OWN_OPTIONS = frozenset(
    (
        *("array", "chdir", "comment", "dependency", "error", "job-name", "kill-on-invalid-dep", "nodes"),
        *("ntasks", "ntasks-per-node", "open-mode", "output", "parsable", "requeue", "no-requeue"),
        *("signal", "wait", "wrap"),
    )
)


@dataclass(frozen=True)
class JobShape:
    """What one job asks of its node. gpus, cpus: numbers. memory: as Slurm writes it, `16G`; null asks for
    none, and the site decides. minutes: walltime."""

    gpus: int
    cpus: int
    memory: str | None
    minutes: int

    def __post_init__(self) -> None:
        if self.gpus < 0:
            raise ValueError(f"gpus must be 0 or more; got {self.gpus}")
        if self.cpus < 1:
            raise ValueError(f"cpus must be at least 1; got {self.cpus}")
        if self.minutes < 1:
            raise ValueError(f"minutes must be at least 1; got {self.minutes}")
        if self.memory is not None and not _MEMORY.fullmatch(self.memory):
            raise ValueError(f"memory must be a number and K, M, G or T, like 16G; got {self.memory}")


@dataclass(frozen=True)
class TrainShape(JobShape):
    """As a JobShape on each of so many nodes; over several the engine trains with Ray."""

    nodes: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nodes < 1:
            raise ValueError(f"nodes must be at least 1; got {self.nodes}")


@dataclass(frozen=True)
class JobShapes:
    """The shape of each kind of job."""

    train: TrainShape
    evaluate: JobShape
    report: JobShape


@dataclass(frozen=True)
class Pythons:
    """The interpreter of each environment on the cluster; null for the one that submits."""

    control: str | None
    train: str | None
    evaluate: str | None


@dataclass(frozen=True)
class SlurmSettings:
    """How jobs are sent to a site.

    partition, account, qos, constraint: as sbatch takes them, null to leave them out. gpu_request: the option
    that asks for GPUs, `--gres=gpu[:type]:N` or `--gpus-per-node=[type:]N`. parallelism: tasks of an array
    that run at a time, null for no limit. max_array_size: tasks of an array, null to ask the cluster.
    signal_seconds: how long before its walltime a job is asked to save. max_requeues: how often a job that
    was asked to save is put back into the queue. stall_minutes: a training without a new step for so long, or
    an evaluation without a new batch, is ended. ray_join_seconds: within which every node of a training on
    several must have joined Ray. setup: shell lines run before anything else (module load, conda activate).
    environment: variables of the jobs. shared_paths: folders that every node must see. extra: further sbatch
    options by long name.
    """

    partition: str | None
    account: str | None
    qos: str | None
    constraint: str | None
    gpu_request: Literal["gres", "gpus-per-node"]
    gpu_type: str | None
    shapes: JobShapes
    parallelism: int | None
    max_array_size: int | None
    signal_seconds: int
    max_requeues: int
    stall_minutes: float
    ray_join_seconds: float
    python: Pythons
    setup: list[str]
    environment: dict[str, str]
    shared_paths: list[str]
    extra: dict[str, str]

    def __post_init__(self) -> None:
        for name in ("parallelism", "max_array_size"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, or null; got {value}")
        if self.signal_seconds < 1:
            raise ValueError(f"signal_seconds must be at least 1; got {self.signal_seconds}")
        if self.max_requeues < 0:
            raise ValueError(f"max_requeues must be 0 or more; got {self.max_requeues}")
        for name in ("stall_minutes", "ray_join_seconds"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0; got {getattr(self, name)}")
        for kind in ("train", "evaluate"):
            minutes = getattr(self.shapes, kind).minutes
            if minutes * 60 < 2 * self.signal_seconds:
                raise ValueError(
                    f"signal_seconds = {self.signal_seconds} leaves less than half of the {minutes} minutes "
                    f"of shapes.{kind} for work: lower it, or raise shapes.{kind}.minutes"
                )
        for variable in self.environment:
            if not _VARIABLE.fullmatch(variable):
                raise ValueError(f"environment has a variable with an impossible name: {variable!r}")
            if _SECRET.search(variable):
                raise ValueError(
                    f"environment holds {variable}, which looks like a secret and would be written into "
                    "every run: export it in your shell before you submit, or in a private file that a line "
                    "of setup sources"
                )
        for option in self.extra:
            if option in _OWN_OPTIONS:
                raise ValueError(f"extra must not hold {option}: fastrl submit sets it itself")
            if not _OPTION.fullmatch(option):
                raise ValueError(f"extra has an option with an impossible name: {option!r}")


@dataclass(frozen=True)
class ClusterSettings:
    """Where a study's cells run.

    workers: cells at a time on this machine, None for one a core. slurm: None where there is no Slurm.
    """

    name: str
    workers: int | None
    slurm: SlurmSettings | None

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"workers must be at least 1, or null for one a core; got {self.workers}")
