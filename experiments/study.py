"""From a study file to its plan: every cell composed, checked, identified and labelled.

A study file (`conf/study/<name>.yaml`) names cells by Hydra overrides with Hydra's own sweep grammar: comma
lists, `range(a,b)`, `choice(a,b)`, `glob(*)`; an entry stands for the product of its sweeps.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import yaml

from experiments.compose import compose_cell
from experiments.config_tree import CONF, group_options, parse_overrides, quoted
from experiments.errors import UserError, did_you_mean, listed
from experiments.identity import arm_id, digest, run_id
from experiments.labels import distinct_labels, fill_template, value_text
from experiments.plan import OWN_TEST, Cell, Plan, ReportSettings
from experiments.provenance import code_commit
from experiments.schema import build_settings
from experiments.sweep import expand, merged

_SWEEP_TARGET = 0.5
"""Validation accuracy that `time_to_accuracy` counts towards, of a sweep that no study file names."""


@dataclass(frozen=True)
class StudyEntry:
    """Cells of a study that share a group tag.

    group: a tag that tables filter on. overrides: Hydra overrides separated by spaces, with sweeps.
    label: template of the arms' row names, None for the method's label; `{tau}` stands for the value of the
    override whose key ends in `tau`, `{label}`, `{model_label}`, `{dataset_label}` for the config's labels.
    """

    group: str
    overrides: str
    label: str | None = None


@dataclass(frozen=True)
class StudyFile:
    """A study file as it is written; see `experiments.plan` for what its fields mean in a plan.

    base: overrides of every own cell; an entry's override of the same key replaces it. studies: others, whose
    cells come before the own ones, each as it is there.
    """

    title: str
    baseline: str
    clock: Literal["cpu", "wall"]
    base: list[str]
    cells: list[StudyEntry]
    report: ReportSettings
    studies: tuple[str, ...] = ()


@dataclass(frozen=True)
class SweepCell:
    """A cell of a sweep that no study file names: its resolved config, and the overrides that made it."""

    config: dict[str, Any]
    overrides: tuple[str, ...]


@dataclass(frozen=True)
class _Draft:
    """A cell before its label is known to be unique."""

    config: dict[str, Any]
    overrides: tuple[str, ...]
    label: str
    groups: tuple[str, ...]


def plan_study(
    study: str, overrides: Sequence[str], root: Path, extra_conf_dirs: Sequence[Path] = ()
) -> tuple[Plan, dict[str, dict[str, Any]]]:
    """Expand a study into its plan and the resolved config of each run id.

    overrides: apply to every cell and replace an entry's override of the same key; a sweep among them
    multiplies the cells. A cell reached twice is one, with label and group of the entry that named it first.
    root: results folder; it becomes every cell's `paths.root`, whatever an override says.
    Raises UserError for an unknown study, a study without cells, and anything wrong in a cell.
    """
    folders = (CONF, *extra_conf_dirs)
    path, file = read_study(study, folders)
    own = [override for override in overrides if not override.startswith("paths.root=")]
    drafts: dict[str, _Draft] = {}
    for where, base, entry in _entries(path, file, folders, (study,)):
        layers = (base, entry.overrides.split(), own)
        for cell_overrides in expand(merged(layers, where), folders, where):
            config = _composed(cell_overrides, root, extra_conf_dirs, where)
            label = _label(entry, config, cell_overrides, where)
            draft = _Draft(config, cell_overrides, label, (entry.group,))
            earlier = drafts.get(run_id(config))
            drafts[run_id(config)] = _joined(earlier, draft) if earlier else draft
    labels = distinct_labels([(draft.label, draft.config) for draft in drafts.values()])
    _check_names(file, path, folders, set(labels.values()))
    plan = Plan(
        study=study,
        title=file.title,
        baseline=file.baseline,
        clock=file.clock,
        commit=code_commit(),
        created=time.time(),
        cells=tuple(_cell(draft, labels[arm_id(draft.config)]) for draft in drafts.values()),
        report=file.report,
    )
    return plan, {identity: draft.config for identity, draft in drafts.items()}


def plan_sweep(cells: Sequence[SweepCell]) -> tuple[Plan, dict[str, dict[str, Any]]]:
    """The plan of cells that no study file names, and the resolved config of each run id.

    It is called `multirun-<digest of its cells>`; its baseline is the first cell's arm, and the in-domain
    benchmark of its report that cell's first.
    """
    drafts = {
        run_id(cell.config): _Draft(cell.config, cell.overrides, cell.config["method"]["label"], ("main",))
        for cell in cells
    }
    labels = distinct_labels([(draft.label, draft.config) for draft in drafts.values()])
    first = cells[0].config
    benchmarks = tuple(first["benchmarks"])
    tables = ("table1",) if benchmarks else ()
    report = ReportSettings(tables, (), "".join(benchmarks[:1]), benchmarks[1:], _SWEEP_TARGET)
    plan = Plan(
        study=f"multirun-{digest(sorted(drafts))}",
        title=f"Sweep of {len(drafts)} cells",
        baseline=labels[arm_id(first)],
        clock="cpu",
        commit=code_commit(),
        created=time.time(),
        cells=tuple(_cell(draft, labels[arm_id(draft.config)]) for draft in drafts.values()),
        report=report,
    )
    return plan, {identity: draft.config for identity, draft in drafts.items()}


def read_study(study: str, folders: Sequence[Path]) -> tuple[Path, StudyFile]:
    """The path and the checked contents of a study file, looked up by name in the config folders."""
    options = group_options(folders, "study")
    if study not in options:
        way_out = f"{did_you_mean(study, options)}studies: {listed(options)}"
        raise UserError(f'There is no study "{study}".', f"study={study}", way_out)
    files = [folder / "study" / f"{study}.yaml" for folder in folders]
    path = next(file for file in files if file.is_file())
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise UserError(f"The study file is not valid YAML: {error}", str(path), "mend the file") from None
    if not isinstance(content, Mapping):
        raise UserError(
            "The study file is empty or not a mapping.", str(path), "see the study laptop for the form"
        )
    if not content.get("cells") and not content.get("studies"):
        raise UserError(f'The study "{study}" has no cells.', str(path), "name some under cells: in the file")
    file, problems = build_settings(StudyFile, content)
    if file is None:
        raise UserError(problems[0].what, str(path), problems[0].way_out)
    return path, file


def _entries(
    path: Path, file: StudyFile, folders: Sequence[Path], within: tuple[str, ...]
) -> Iterator[tuple[str, Sequence[str], StudyEntry]]:
    """Where each entry of a study stands, the base of its file, the entry; those of named studies first."""
    for name in file.studies:
        if name in within:
            raise UserError(f'The study "{name}" holds itself.', str(path), f"take {name} out of studies:")
        yield from _entries(*read_study(name, folders), folders, (*within, name))
    for number, entry in enumerate(file.cells, start=1):
        yield f"{path}, entry {number} of cells", file.base, entry


def _composed(
    overrides: Sequence[str], root: Path, extra_conf_dirs: Sequence[Path], where: str
) -> dict[str, Any]:
    try:
        return compose_cell([*overrides, f"paths.root={quoted(str(root))}"], extra_conf_dirs)
    except UserError as error:
        place = f"{error.where}, in {where}" if error.where else where
        raise UserError(error.what, place, error.way_out) from None


def _joined(earlier: _Draft, later: _Draft) -> _Draft:
    """One draft of a cell that two entries name: the earlier one with the groups and benchmarks of both."""
    benchmarks = {**later.config["benchmarks"], **earlier.config["benchmarks"]}
    order = dict.fromkeys([*earlier.config["benchmarks"], *later.config["benchmarks"]])
    config = {**earlier.config, "benchmarks": {name: benchmarks[name] for name in order}}
    return replace(earlier, config=config, groups=tuple(dict.fromkeys([*earlier.groups, *later.groups])))


def _label(entry: StudyEntry, config: Mapping[str, Any], overrides: Sequence[str], where: str) -> str:
    label: str = config["method"]["label"]
    if entry.label is None:
        return label
    words = {"label": label, **{f"{part}_label": config[part]["label"] for part in ("model", "dataset")}}
    for override in parse_overrides(overrides):
        name = override.key_or_group.rpartition(".")[2]
        if name != "seed":
            words[name] = value_text(override.value())
    return fill_template(entry.label, words, where)


def _check_names(file: StudyFile, path: Path, folders: Sequence[Path], labels: Collection[str]) -> None:
    """A misspelt name in a study file fails now and not after the runs: each must exist somewhere."""
    methods = group_options(folders, "method")
    if file.baseline not in methods and file.baseline not in labels:
        way_out = f"{did_you_mean(file.baseline, [*methods, *labels])}labels: {listed(labels)}"
        raise UserError(
            f'The baseline "{file.baseline}" is neither a method nor an arm\'s label.', str(path), way_out
        )
    benchmarks = group_options(folders, "benchmark")
    for name in (file.report.in_domain, *file.report.out_of_domain):
        if name not in (*benchmarks, OWN_TEST):
            way_out = f"{did_you_mean(name, benchmarks)}benchmarks: {listed(benchmarks)}"
            raise UserError(f'There is no benchmark "{name}" for the report.', str(path), way_out)


def _cell(draft: _Draft, label: str) -> Cell:
    config = draft.config
    return Cell(
        run_id=run_id(config),
        arm=arm_id(config),
        label=label,
        group=draft.groups[0],
        groups=draft.groups,
        seed=config["seed"],
        method=config["method"]["name"],
        model=config["model"]["name"],
        dataset=config["dataset"]["name"],
        engine=config["engine"]["name"],
        tau=config["method"]["selector"].get("tau"),
        overrides=draft.overrides,
        stages=("train", *(f"evaluate-{name}" for name in config["benchmarks"])),
    )
