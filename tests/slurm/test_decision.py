"""What a submission sends, joins and leaves, and how it becomes arrays."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rehearsal import CLUSTER, EVALUATE, TRAIN, cell_config, study

from experiments.cluster_settings import ClusterSettings, SlurmSettings
from experiments.errors import UserError
from experiments.plan import Cell
from experiments.schema import build_settings
from slurm.arrays import DraftArray, draft_arrays
from slurm.decision import Decision, Retry, decide
from slurm.ledger import JobArray, StageTask, Submission, Submitted
from slurm.overview import CellView, Overview, StageView
from slurm.queue import JobState, TaskId
from slurm.verdict import Source, StageState, Verdict

PLAN, _ = study([cell_config(seed) for seed in range(6)])
SUBMISSION = Submission(Path("/r/slurm/s"), "counting", 0.0, "site", "/code", ())


def slurm() -> SlurmSettings:
    cluster, _ = build_settings(ClusterSettings, CLUSTER)
    assert cluster is not None and cluster.slurm is not None
    return cluster.slurm


def stage_view(stage: str, state: StageState, index: int) -> StageView:
    active = state in ("queued", "running")
    array = JobArray(1, "name", "40", "", 1.0, 1, 60.0, {index: StageTask("run", stage, ())})
    job = JobState("RUNNING", "squeue", "41", "", "", "") if active else None
    sent = Submitted(SUBMISSION, array, TaskId("40", index), False) if active else None
    source: Source = "squeue" if active else "status.json"
    return StageView(stage, Verdict(state, source, ""), None, sent, job)


def overview(*states: tuple[StageState, StageState]) -> Overview:
    cells = [
        CellView(
            cell,
            {TRAIN: stage_view(TRAIN, train, index), EVALUATE: stage_view(EVALUATE, evaluate, index)},
            0,
            None,
            None,
        )
        for index, (cell, (train, evaluate)) in enumerate(zip(PLAN.cells, states, strict=False))
    ]
    return Overview(PLAN, tuple(cells), None, ())


def decided(
    view: Overview, retry: Retry | None = None, only: tuple[str, ...] = (), limit: int | None = None
) -> Decision:
    done = {
        (each.cell.run_id, stage)
        for each in view.cells
        for stage, one in each.stages.items()
        if one.verdict.state == "done"
    }
    return decide(view, lambda cell, stage: (cell.run_id, stage) in done, retry, only, limit)


def sent(decision: Decision) -> list[tuple[int, str]]:
    numbers = {cell.run_id: number for number, cell in enumerate(PLAN.cells)}
    return [(numbers[step.cell.run_id], step.stage) for step in decision.send]


@pytest.mark.parametrize(
    ("train", "evaluate", "expected"),
    [
        ("pending", "pending", [TRAIN, EVALUATE]),
        ("preempted", "skipped", [TRAIN, EVALUATE]),
        ("cancelled", "skipped", [TRAIN, EVALUATE]),
        ("timeout", "skipped", [TRAIN, EVALUATE]),
        ("done", "pending", [EVALUATE]),
        ("done", "cancelled", [EVALUATE]),
        ("done", "failed", []),
        ("running", "queued", []),
        ("running", "skipped", [EVALUATE]),
        ("failed", "skipped", []),
        ("lost", "skipped", []),
        ("out_of_memory", "skipped", []),
        ("done", "done", []),
    ],
)
def test_what_is_sent_without_being_asked_to_retry(
    train: StageState, evaluate: StageState, expected: list[str]
) -> None:
    assert [stage for _, stage in sent(decided(overview((train, evaluate))))] == expected


@pytest.mark.parametrize(
    ("retry", "cells"), [("failed", [0]), ("lost", [1, 2]), ("all", [0, 1, 2]), (None, [])]
)
def test_retry_names_the_kind_of_end(retry: Retry | None, cells: list[int]) -> None:
    view = overview(("failed", "skipped"), ("lost", "skipped"), ("killed", "skipped"))
    decision = decided(view, retry)
    assert sorted({number for number, _ in sent(decision)}) == cells
    assert len(decision.left) == 3 - len(cells)


def test_limit_counts_cells_and_only_names_them() -> None:
    view = overview(*[("pending", "pending")] * 6)
    assert sent(decided(view, limit=2)) == [(0, TRAIN), (0, EVALUATE), (1, TRAIN), (1, EVALUATE)]
    names = ("2", PLAN.cells[4].run_id, "*-s5-*")
    assert sorted({number for number, _ in sent(decided(view, only=names))}) == [1, 4, 5]
    with pytest.raises(UserError, match='No cell is called "nobody"'):
        decided(view, only=("nobody",))


def arrays(decision: Decision, largest: int, canary: bool = False) -> list[DraftArray]:
    def task(cell: Cell, stage: str) -> StageTask:
        return StageTask(cell.run_id, stage, ())

    def gate(cell: Cell) -> StageTask:
        return StageTask("", "gate", ())

    settings = {cell.run_id: slurm() for cell in PLAN.cells}
    return draft_arrays(decision, settings, largest, task, gate if canary else None)


STATES = st.sampled_from(["pending", "done", "running", "queued", "failed", "lost", "cancelled", "skipped"])


@given(
    st.lists(st.tuples(STATES, STATES), min_size=1, max_size=6),
    st.integers(1, 7),
    st.booleans(),
    st.booleans(),
)
def test_every_stage_is_sent_once_after_what_it_needs(
    states: list[tuple[StageState, StageState]], largest: int, canary: bool, retry: bool
) -> None:
    view = overview(*states)
    decision = decided(view, "all" if retry else None)
    drafts = arrays(decision, largest, canary)
    tasks = [(task.run_id, task.stage) for draft in drafts for task in draft.tasks.values() if task.run_id]
    assert sorted(tasks) == sorted((step.cell.run_id, step.stage) for step in decision.send)
    place = {id(draft): number for number, draft in enumerate(drafts)}
    trained = {each.cell.run_id: each.stages[TRAIN] for each in view.cells}
    for number, draft in enumerate(drafts):
        assert len(draft.tasks) <= max(largest, len(states) if draft.after else 0)
        assert all(place[id(other)] < number for _, other in draft.after if isinstance(other, DraftArray))
        for index, task in draft.tasks.items():
            if task.stage != EVALUATE:
                continue
            before = [other for kind, other in draft.after if kind == "aftercorr"]
            if trained[task.run_id].verdict.state in ("running", "queued"):
                assert before == ["40"]
                assert index == trained[task.run_id].submitted.task.index  # type: ignore[union-attr]
            elif (task.run_id, TRAIN) in tasks:
                (parent,) = before
                assert isinstance(parent, DraftArray)
                assert parent.tasks[index].run_id == task.run_id
            else:
                assert trained[task.run_id].verdict.state == "done"
                assert before == []


def test_a_canary_goes_first_and_a_gate_holds_the_rest() -> None:
    canary, gate, rest, evaluate_first, evaluate_rest = arrays(
        decided(overview(*[("pending", "pending")] * 4)), 100, canary=True
    )
    assert canary.after == ()
    assert [task.run_id for task in canary.tasks.values()] == [PLAN.cells[0].run_id]
    assert gate.after == (("after", canary),)
    assert rest.after == (("afterok", gate),)
    assert len(rest.tasks) == 3
    assert evaluate_first.after == (("aftercorr", canary),)
    assert evaluate_rest.after == (("aftercorr", rest),)
