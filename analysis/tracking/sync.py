"""From the run directories of a study into MLflow: everything once, and later only what is new."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.tracking.names import RUN_ID_TAG, STUDY_TAG
from analysis.tracking.snapshot import OVER, Snapshot, take_snapshot
from analysis.tracking.store import (
    artefact_location,
    default_uri,
    first_line,
    open_client,
    shown,
    sqlite_file,
    tracking_lock,
)
from analysis.tracking.upload import upload
from experiments.atomic_files import write_error, write_file
from experiments.errors import UserError
from experiments.plan import Plan, read_plan
from experiments.run_directory import RunDirectory

if TYPE_CHECKING:
    from mlflow.entities import Run
    from mlflow.tracking import MlflowClient

_RUNS_A_PAGE = 1000


@dataclass(frozen=True)
class SyncReport:
    """What a sync did with the runs of a study. metrics: values logged. uri: without user and password."""

    study: str
    uri: str
    added: int
    updated: int
    unchanged: int
    not_started: int
    metrics: int

    def __str__(self) -> str:
        counts = {
            "new": self.added,
            "updated": self.updated,
            "unchanged": self.unchanged,
            "not started": self.not_started,
        }
        runs = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
        return f"MLflow, experiment {self.study}: runs {runs}; {self.metrics} new metric values ({self.uri})"


def sync_study(root: Path, study: str, uri: str | None) -> SyncReport:
    """Bring the runs of a study, as they are now, into the MLflow experiment of the study's name.

    uri: MLflow's tracking URI; None for the SQLite file under `<root>/tracking`. It may be called at any time
    and any number of times; runs of which no stage has been tried are left out. When nothing has changed
    since the last sync into a SQLite file, mlflow is not even imported.

    Raises UserError for a missing plan, a store that can't be opened or written, and, once the other runs are
    in, for runs with damaged files.
    """
    plan = read_plan(root, study)
    uri = uri or default_uri(root)
    with tracking_lock(root):
        snapshots, damages = _snapshots(root, plan)
        digest = _digest(uri, plan, snapshots)
        counts: Counter[str] = Counter(unchanged=len(snapshots))
        if _last_digest(uri, study) != digest:
            counts, refused = _upload_all(uri, plan, snapshots)
            damages += refused
            if not refused:
                _remember_digest(uri, study, digest)
    if damages:
        first = damages[0]
        raise UserError(
            f"{len(damages)} of {len(plan.cells)} runs can't be tracked, the others are; first: {first.what}",
            first.where,
            first.way_out,
            exit_code=1,
        )
    return SyncReport(
        study=study,
        uri=shown(uri),
        added=counts["added"],
        updated=counts["updated"],
        unchanged=counts["unchanged"],
        not_started=len(plan.cells) - len(snapshots),
        metrics=counts["metrics"],
    )


def _snapshots(root: Path, plan: Plan) -> tuple[list[Snapshot], list[UserError]]:
    """The runs that have been tried, in the plan's order, and what is wrong with those that can't be read."""
    snapshots, damages = [], []
    for cell in plan.cells:
        try:
            snapshot = take_snapshot(RunDirectory(root / "runs" / cell.run_id), cell)
        except UserError as damage:
            damages.append(damage)
            continue
        if snapshot is not None:
            snapshots.append(snapshot)
    return snapshots, damages


def _upload_all(uri: str, plan: Plan, snapshots: Sequence[Snapshot]) -> tuple[Counter[str], list[UserError]]:
    """Counts by outcome and of metrics, and what is wrong with the runs that were not brought in."""
    client = open_client(uri)
    from mlflow.exceptions import MlflowException

    counts: Counter[str] = Counter()
    refused: list[UserError] = []
    try:
        experiment = _experiment(client, uri, plan)
        parent, known = _known_runs(client, experiment)
        study_run = parent or _create_parent(client, experiment, plan, snapshots)
        identifier: str = study_run.info.run_id
        for snapshot in snapshots:
            run = known.get(snapshot.cell.run_id)
            try:
                outcome, metrics = upload(client, experiment, identifier, snapshot, run)
            except UserError as damage:
                refused.append(damage)
                continue
            counts[outcome] += 1
            counts["metrics"] += metrics
        _update_parent(client, study_run, plan, snapshots)
    except MlflowException as error:
        raise UserError(
            f"MLflow did not take a run of the study {plan.study}: {first_line(error)}.",
            shown(uri),
            "check the server, or the disk and the permissions of the SQLite file, then track again: what is "
            "there already stays",
            exit_code=1,
        ) from error
    except OSError as error:
        raise write_error(Path(error.filename or shown(uri)), error) from error
    return counts, refused


def _experiment(client: MlflowClient, uri: str, plan: Plan) -> str:
    """The id of the study's experiment, made on first use and restored when it was deleted."""
    report = f"studies/{plan.study}/report.html"
    tags = {
        "mlflow.note.content": f"{plan.title}\n\nReport: `{report}` in the results folder.",
        "mlflow.experimentKind": "custom_model_development",
    }
    experiment = client.get_experiment_by_name(plan.study)
    if experiment is None:
        location = artefact_location(uri, plan.study)
        return str(client.create_experiment(plan.study, artifact_location=location, tags=tags))
    identifier = str(experiment.experiment_id)
    if experiment.lifecycle_stage == "deleted":
        client.restore_experiment(identifier)
    for key, text in tags.items():
        if experiment.tags.get(key) != text:
            client.set_experiment_tag(identifier, key, text)
    return identifier


def _known_runs(client: MlflowClient, experiment: str) -> tuple[Run | None, dict[str, Run]]:
    """MLflow's run of the study and those of its cells by our run id; it gives them out page by page."""
    parent: Run | None = None
    runs: dict[str, Run] = {}
    token = None
    while True:
        page = client.search_runs([experiment], max_results=_RUNS_A_PAGE, page_token=token)
        runs |= {run.data.tags[RUN_ID_TAG]: run for run in page if RUN_ID_TAG in run.data.tags}
        parent = next((run for run in page if STUDY_TAG in run.data.tags), parent)
        token = page.token
        if not token:
            return parent, runs


def _create_parent(client: MlflowClient, experiment: str, plan: Plan, snapshots: Sequence[Snapshot]) -> Run:
    """The run that stands for the study, under which MLflow shows the runs of its cells."""
    started = min((each.started for each in snapshots), default=plan.created)
    tags = {STUDY_TAG: plan.study, "mlflow.source.name": "fastrl"}
    return client.create_run(experiment, round(1000 * started), tags, run_name=plan.study)


def _update_parent(client: MlflowClient, parent: Run, plan: Plan, snapshots: Sequence[Snapshot]) -> None:
    """The study is over when all of its runs are; its state is then the worst of theirs."""
    states = {each.tracked.state for each in snapshots}
    over = bool(states) and len(snapshots) == len(plan.cells) and states <= set(OVER)
    if over:
        state = next((each for each in ("FAILED", "KILLED") if each in states), "FINISHED")
    else:
        state = "RUNNING" if "RUNNING" in states else "SCHEDULED"
    if parent.info.status == state:
        return
    if over:
        ended = max(each.ended for each in snapshots)
        client.set_terminated(parent.info.run_id, state, round(1000 * ended))
    else:
        client.update_run(parent.info.run_id, state)


def _digest(uri: str, plan: Plan, snapshots: Sequence[Snapshot]) -> str:
    """A digest of all that a sync would leave in the store."""
    content = [uri, plan.title, {each.cell.run_id: asdict(each.tracked) for each in snapshots}]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("utf-8")).hexdigest()


def _last_digest(uri: str, study: str) -> str | None:
    """The digest of the last sync into a SQLite file; None for a server, which others may change."""
    path = _digest_path(uri, study)
    return path.read_text(encoding="utf-8") if path is not None and path.exists() else None


def _remember_digest(uri: str, study: str, digest: str) -> None:
    path = _digest_path(uri, study)
    if path is not None:
        write_file(path, digest)


def _digest_path(uri: str, study: str) -> Path | None:
    """Beside the SQLite file; None when there is no such file."""
    file = sqlite_file(uri)
    return file.with_name(f"{study}.digest") if file is not None and file.exists() else None
