"""What a table is built from: which arms, which columns. Each table's file holds one of these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from analysis.paper import difference_note
from analysis.statistics import CONFIDENCE
from analysis.study import Arm, Study
from analysis.table import Row, Table, missing_notes, reported_notes
from analysis.tables.columns import ArmColumn
from analysis.values import Source, missing


class TableSpec(Protocol):
    """One table of a report, registered in `analysis.tables.TABLES` under its name."""

    @property
    def name(self) -> str: ...

    def build(self, study: Study) -> Table:
        """The table of a study's records; without rows when the study has no arm for it."""
        ...


@dataclass(frozen=True)
class ArmTable:
    """A table with a row an arm.

    paper_item: the paper's table that it follows, "" for none.
    arms: the rows, in order. columns: given the study and those arms. notes: sentences under the table.
    row_label: what a row is called, the arm's label unless said otherwise.
    """

    name: str
    title: str
    paper_item: str
    corner: str
    arms: Callable[[Study], Sequence[Arm]]
    columns: Callable[[Study, Sequence[Arm]], Sequence[ArmColumn]]
    notes: Callable[[Study], Sequence[str]]
    row_label: Callable[[Arm], str] = lambda arm: arm.label

    def build(self, study: Study) -> Table:
        arms = self.arms(study)
        if not arms:
            return Table(self.name, self.title, self.paper_item, self.corner, (), (), (), (), seeds=True)
        filled = self.columns(study, arms)
        columns = tuple(each.column for each in filled)
        rows = tuple(row for arm in arms for row in self._rows(arm, filled))
        papers = tuple(dict.fromkeys(each.paper for each in filled if each.paper))
        return Table(
            name=self.name,
            title=self.title,
            paper_item=self.paper_item,
            corner=self.corner,
            columns=columns,
            rows=rows,
            notes=(*self.notes(study), *reported_notes(rows), *difference_note(study, arms, papers)),
            gaps=(*missing_notes(rows, columns), *completeness(study, arms)),
            seeds=True,
        )

    def _rows(self, arm: Arm, columns: Sequence[ArmColumn]) -> Iterator[Row]:
        """The arm's row, then one for each further figure that contradicts the paper's first."""
        label = self.row_label(arm)
        yield Row(label, tuple(each.value(arm) for each in columns))
        further = [each.more(arm) for each in columns]
        for index in range(max(map(len, further), default=0)):
            values = tuple(
                more[index] if index < len(more) else missing(each.value(arm).source)
                for more, each in zip(further, columns, strict=True)
            )
            notes = [value.note for value in values if value.source is Source.REPORTED and value.note]
            yield Row(f"{label}, in the paper's {notes[0].partition(':')[0]}", values)


def unique(arms: Sequence[Arm | None]) -> tuple[Arm, ...]:
    """The arms in order, each once, without those that the study does not have."""
    return tuple({arm.id: arm for arm in arms if arm is not None}.values())


def interval_note() -> str:
    """How the numbers are to be read."""
    return (
        f"Mean over seeds ± half of its {100 * CONFIDENCE:.0f} % t interval, which needs three seeds. "
        "In parentheses the number of seeds where it is not the row's."
    )


def clock_note(study: Study) -> str:
    """What the study's seconds are."""
    what = (
        "CPU seconds of the training process" if study.plan.clock == "cpu" else "seconds of wall-clock time"
    )
    return f"{study.clock.unit}: {what}, without validations and checkpoints."


def speed_note(study: Study) -> str:
    """What a speed is relative to."""
    return (
        f"Speed: {study.baseline.label}'s time over the row's, geometric mean over the seeds that both have, "
        "with its interval in brackets."
    )


def completeness(study: Study, arms: Sequence[Arm]) -> tuple[str, ...]:
    """What is missing of the runs behind some arms, as one sentence; nothing when all are there."""
    planned = {run_id for arm in arms for run_id in arm.runs.values()}
    states = {each.cell.run_id: "set aside" for each in study.set_aside}
    for each in study.unfinished:
        states.setdefault(each.cell.run_id, f"{each.stage} {each.state}")
    counted = Counter(states[run_id] for run_id in sorted(planned & states.keys()))
    if not counted:
        return ()
    listed = ", ".join(f"{count} {state}" for state, count in sorted(counted.items()))
    return (f"{sum(counted.values())} of {len(planned)} runs missing or incomplete: {listed}.",)
