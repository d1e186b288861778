"""Table 8: mean seconds of each stage of a training step, FastRL against the baseline."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.comparison import read
from analysis.measures import stage_time
from analysis.paper import difference_note, figures_beside, paper_group
from analysis.step_frames import OPTIMISATION, STAGES
from analysis.study import Arm, Study
from analysis.table import Better, Column, Form, Row, Table, missing_notes, reported_notes
from analysis.tables.spec import clock_note, completeness, interval_note, unique
from analysis.values import Source, Value, missing, reported

_COMPARED = ("gen", "reward", "old", "ref", "update_actor", "optimisation", "step")
"""Where a ratio says something: advantages take next to no time, and the baseline selects nothing."""

_NAMES = {
    "gen": "generation",
    "reward": "reward",
    "adv": "advantages",
    "select": "selection",
    "old": "old log-probs",
    "ref": "reference log-probs",
    "update_actor": "policy updates",
}


@dataclass(frozen=True)
class StageTable:
    """A table with a row a stage: seconds of the baseline and of one method, and their ratio."""

    name: str
    title: str
    paper_item: str
    method: str

    def build(self, study: Study) -> Table:
        arms = unique([study.baseline, study.main_arm(self.method)])
        if len(arms) < 2:
            return Table(self.name, self.title, self.paper_item, "Stage", (), (), (), (), seeds=False)
        baseline, ours = arms
        unit = study.clock.unit
        seconds, paper = f"{unit} a step", paper_group(study, arms, "table8")
        columns = (
            *(Column(f"{arm.label}_{unit}", arm.label, 3, Better.NEITHER, group=seconds) for arm in arms),
            Column(f"speed_over_{baseline.label}", "Speed", 2, Better.NEITHER, Form.RATIO),
            *(
                Column(f"reported_{arm.method}_s", arm.label, 2, Better.NEITHER, group=f"{paper} (s)")
                for arm in arms
            ),
            Column("reported_speed", "Speed", 2, Better.NEITHER, Form.RATIO, paper),
        )
        measures = [
            *((stage, stage_time(study, (stage,), _NAMES[stage])) for stage in STAGES),
            ("optimisation", stage_time(study, OPTIMISATION, "all but generation and reward")),
            ("step", stage_time(study, ("step",), "step")),
        ]
        rows = []
        for key, measure in measures:
            readings = read(study, measure)
            values = (
                readings.mean(baseline),
                readings.mean(ours),
                readings.speed(ours, baseline) if key in _COMPARED else missing(Source.DERIVED),
                *(_reported(study, arm, key) for arm in arms),
                _reported(study, ours, f"{_REPORTED_SPEEDS.get(key, key)}_speed"),
            )
            rows.append(Row(measure.header, values))
        filled = tuple(rows)
        speed_note = f"Speed: {baseline.label}'s seconds over {ours.label}'s, geometric mean over seeds."
        return Table(
            name=self.name,
            title=self.title,
            paper_item=self.paper_item,
            corner="Stage",
            columns=columns,
            rows=filled,
            notes=(
                interval_note(),
                speed_note,
                clock_note(study),
                *reported_notes(filled),
                *difference_note(study, arms, ("table8",)),
            ),
            gaps=(*missing_notes(filled, columns), *completeness(study, arms)),
            seeds=False,
        )


_REPORTED_SPEEDS = {"gen": "generation"}


def _reported(study: Study, arm: Arm, metric: str) -> Value:
    figures = figures_beside(study, arm, "table8", metric)
    return reported(figures[0].value, figures[0].place) if figures else missing(Source.REPORTED)


TABLE = StageTable(
    name="table8", title="Seconds of each stage of a step", paper_item="Table 8", method="fastrl"
)
