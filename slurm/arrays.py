"""From a decision to job arrays: grouped by stage and settings, chunked, each with what it waits for.

An evaluation waits for the training of its own cell alone (`aftercorr`: the task of the same index), so its
tasks keep the indices of the training's array, also when that array has been in the queue since before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from experiments.cluster_settings import SlurmSettings
from experiments.plan import Cell
from slurm.decision import Decision, Step
from slurm.ledger import REPORT, StageTask

GATE = "gate"
"""The kind of the job that holds the rest back until the canary has made a step."""


@dataclass(frozen=True, eq=False)
class DraftArray:
    """An array to be sent. kind: a stage's name, `gate` or `report`. after: what it waits for, each a kind of
    dependency with a draft or the id of a job that is in the queue already."""

    kind: str
    settings: SlurmSettings
    tasks: Mapping[int, StageTask]
    after: tuple[tuple[str, DraftArray | str], ...]


def draft_arrays(
    decision: Decision,
    settings: Mapping[str, SlurmSettings],
    largest: int,
    task_of: Callable[[Cell, str], StageTask],
    gate_of: Callable[[Cell], StageTask] | None,
) -> list[DraftArray]:
    """The arrays of a decision, each after those that it waits for; without the report.

    settings: of each run id. largest: tasks of an array. gate_of: the gate's task for a canary; None for no
    canary.
    """
    trainings = [step for step in decision.send if step.stage == "train"]
    drafts: list[DraftArray] = []
    held: tuple[tuple[str, DraftArray | str], ...] = ()
    if gate_of is not None and trainings:
        first = trainings.pop(0).cell
        canary = DraftArray("train", settings[first.run_id], {0: task_of(first, "train")}, ())
        gate = DraftArray(GATE, settings[first.run_id], {0: gate_of(first)}, (("after", canary),))
        drafts += [canary, gate]
        held = (("afterok", gate),)
    drafts += _chunked("train", trainings, settings, largest, task_of, held)
    places = {
        task.run_id: (draft, index)
        for draft in drafts
        if draft.kind == "train"
        for index, task in draft.tasks.items()
    }
    for stage in dict.fromkeys(step.stage for step in decision.send if step.stage != "train"):
        steps = [step for step in decision.send if step.stage == stage]
        free = [step for step in steps if not step.waits_for_training and step.waits_for is None]
        drafts += _chunked(stage, free, settings, largest, task_of, held)
        corresponding: list[tuple[DraftArray | str, SlurmSettings, dict[int, StageTask]]] = []
        for step in steps:
            if step.waits_for_training:
                parent: DraftArray | str
                parent, index = places[step.cell.run_id]
            elif step.waits_for is not None:
                parent, index = step.waits_for.job, step.waits_for.index
            else:
                continue
            own = settings[step.cell.run_id]
            members = (tasks for key, other, tasks in corresponding if key == parent and other == own)
            group = next(members, None)
            if group is None:
                group = {}
                corresponding.append((parent, own, group))
            group[index] = task_of(step.cell, stage)
        drafts += [
            DraftArray(stage, own, tasks, (("aftercorr", parent),)) for parent, own, tasks in corresponding
        ]
    return drafts


def report_array(
    drafts: Sequence[DraftArray], joined: Sequence[str], settings: SlurmSettings, task: StageTask
) -> DraftArray:
    """The report's job: after all others, however they end, for it shows what there is."""
    others: list[DraftArray | str] = [*drafts, *dict.fromkeys(joined)]
    after = tuple(("afterany", other) for other in others)
    return DraftArray(REPORT, settings, {0: task}, after)


def _chunked(
    stage: str,
    steps: Sequence[Step],
    settings: Mapping[str, SlurmSettings],
    largest: int,
    task_of: Callable[[Cell, str], StageTask],
    after: tuple[tuple[str, DraftArray | str], ...],
) -> list[DraftArray]:
    """Arrays of steps that wait for nothing of their own, one group for each kind of settings."""
    groups: list[tuple[SlurmSettings, list[Step]]] = []
    for step in steps:
        own = settings[step.cell.run_id]
        group = next((members for other, members in groups if other == own), None)
        if group is None:
            groups.append((own, [step]))
        else:
            group.append(step)
    return [
        DraftArray(
            stage,
            own,
            {index: task_of(step.cell, stage) for index, step in enumerate(members[start : start + largest])},
            after,
        )
        for own, members in groups
        for start in range(0, len(members), largest)
    ]
