"""Table 6: the data: questions of each set that the study trained or was evaluated on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from analysis.paper import training_set_name
from analysis.reported import reported_figures
from analysis.study import Study
from analysis.table import Better, Column, Form, Row, Table, reported_notes
from analysis.values import Source, Value, missing, reported

_COUNTED = {"questions": "Questions", "images": "Images", "repeated": "Repeated"}
_COLUMNS = (
    *(
        Column(
            name,
            header,
            0,
            Better.NEITHER,
            Form.SETTING,
            "Read by the runs" if name == "questions" else "Data card",
        )
        for name, header in _COUNTED.items()
    ),
    Column("reported_questions", "Questions", 0, Better.NEITHER, Form.SETTING, "Paper"),
)
_CARD = "data_card.json"
_PAPER_SPLITS = {"train": "train", "test": "test", "validation": "test"}


@dataclass(frozen=True)
class Split:
    """One set of questions. counts: by what is counted. digests: of its contents, as the runs saw it."""

    label: str
    dataset: str
    split: str
    counts: Mapping[str, int]
    digests: frozenset[str]
    run_ids: tuple[str, ...]


def splits(study: Study) -> tuple[Split, ...]:
    """The sets that the study's runs read in training and in evaluation; of a training set that none has read
    yet, what its data card and the paper say."""
    return (*_training_splits(study), *_benchmark_splits(study))


def _training_splits(study: Study) -> Iterator[Split]:
    found: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = {}
    for cell in study.plan.cells:
        record = study.records.get(cell.run_id)
        for split, facts in (record.data if record else {}).items():
            found.setdefault((cell.dataset, split), {})[cell.run_id] = facts
    for (dataset, split), by_run in found.items():
        label = _dataset_label(study, dataset)
        counts = {"questions": max(int(facts["questions"]) for facts in by_run.values())}
        card = _card(study, dataset).get("splits", {}).get(split, {})
        counts |= {name: int(card[name]) for name in ("images", "repeated") if name in card}
        digests = frozenset(str(facts.get("digest")) for facts in by_run.values())
        yield Split(f"{label}, {split}", dataset, split, counts, digests, tuple(sorted(by_run)))
    read = {dataset for dataset, _ in found}
    for dataset in dict.fromkeys(cell.dataset for cell in study.plan.cells):
        if dataset not in read:
            yield from _unread_splits(study, dataset)


def _unread_splits(study: Study, dataset: str) -> Iterator[Split]:
    """A training set that no run has read: its prepared splits, and those that the paper reports."""
    card = _card(study, dataset)
    reported_splits = [
        figure.metric
        for figure in reported_figures("table6")
        if figure.training_set == training_set_name(dataset)
    ]
    for split in dict.fromkeys([*card.get("splits", {}), *reported_splits]):
        facts = card.get("splits", {}).get(split, {})
        counts = {name: int(facts[name]) for name in _COUNTED if name in facts}
        label = f"{card.get('label', dataset)}, {split}"
        yield Split(label, dataset, split, counts, frozenset(), ())


def _benchmark_splits(study: Study) -> Iterator[Split]:
    by_benchmark: dict[str, dict[str, Mapping[str, Any]]] = {}
    for run_id, record in study.records.items():
        for benchmark, results in record.results.items():
            by_benchmark.setdefault(benchmark, {})[run_id] = results
    for benchmark, by_run in by_benchmark.items():
        counts = {"questions": max(int(results["n_questions"]) for results in by_run.values())}
        digests = frozenset(str(results.get("digests", {}).get("data")) for results in by_run.values())
        label = f"{study.benchmark_label(benchmark)}, benchmark"
        yield Split(label, benchmark, "test", counts, digests, tuple(sorted(by_run)))


def _dataset_label(study: Study, dataset: str) -> str:
    configs = (record.config.get("dataset", {}) for record in study.records.values())
    return next((str(each["label"]) for each in configs if each.get("name") == dataset), dataset)


def _card(study: Study, dataset: str) -> Mapping[str, Any]:
    """A data card as `fastrl data prepare` writes it; empty without one or when it can't be read.

    A set that is drawn has a folder for each of its settings: of several none is taken.
    """
    folder = study.root / "data" / dataset
    found = [path for path in (folder / _CARD, *sorted(folder.glob(f"*/{_CARD}"))) if path.is_file()]
    if not found or (len(found) > 1 and found[0].parent != folder):
        return {}
    try:
        card = json.loads(found[0].read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return card if isinstance(card, dict) else {}


def _reported(split: Split) -> Value:
    wanted = (training_set_name(split.dataset), _PAPER_SPLITS.get(split.split))
    for figure in reported_figures("table6"):
        if (figure.training_set, figure.metric) == wanted:
            return reported(figure.value, figure.place)
    return missing(Source.REPORTED)


def _row(split: Split) -> Row:
    counted = [
        Value(float(split.counts[name]), len(split.run_ids), None, Source.MEASURED, split.run_ids)
        if name in split.counts
        else missing(Source.MEASURED)
        for name in _COUNTED
    ]
    return Row(split.label, (*counted, _reported(split)))


@dataclass(frozen=True)
class DataTable:
    """A table with a row a set of questions."""

    name: str
    title: str
    paper_item: str

    def build(self, study: Study) -> Table:
        found = splits(study)
        rows = tuple(_row(split) for split in found)
        mixed = [
            f"{split.label}: the runs read {len(split.digests)} versions."
            for split in found
            if len(split.digests) > 1
        ]
        return Table(
            name=self.name,
            title=self.title,
            paper_item=self.paper_item,
            corner="Set",
            columns=_COLUMNS if rows else (),
            rows=rows,
            notes=(
                "Images and repeated questions are those of the set's data card, where it was prepared here.",
                *reported_notes(rows),
            )
            if rows
            else (),
            gaps=tuple(mixed),
            seeds=False,
        )


TABLE = DataTable(name="table6", title="The data", paper_item="Table 6")
