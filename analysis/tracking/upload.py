"""One run into MLflow: what it lacks of parameters, metrics, tags and artefacts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from analysis.evaluation_records import checked_evaluation
from analysis.record_error import RecordError
from analysis.tracking.names import (
    PARENT_TAG,
    RUN_ID_TAG,
    TRACKED_TAG,
    evaluation_metrics,
    parameters,
    step_metrics,
    tags,
)
from analysis.tracking.snapshot import OVER, Snapshot, Tracked, records_digest, results_changed
from experiments.errors import UserError

if TYPE_CHECKING:
    from mlflow.entities import DatasetInput, Metric, Param, Run
    from mlflow.tracking import MlflowClient

Outcome = Literal["added", "updated", "unchanged"]

_METRICS_A_BATCH = 1000
_PARAMETERS_A_BATCH = 100
_DIGEST_LETTERS = 36
"""The most that MLflow takes of a data set's digest."""


def upload(
    client: MlflowClient, experiment: str, parent: str, snapshot: Snapshot, known: Run | None
) -> tuple[Outcome, int]:
    """Bring a run in; returns what it was to MLflow and how many metric values were logged.

    parent: MLflow's run of the study. known: its run of the same run id. When that has records that the run
    has no longer (a resumed training cut its log back), it is replaced by a new one, because MLflow keeps
    every value it was ever given. The tag that says what MLflow has is written last: after a kill the same
    values are logged again, which changes nothing.

    Raises UserError for a record that can't be tracked, MlflowException when the store refuses.
    """
    from mlflow.entities import RunTag

    now = snapshot.tracked
    before = Tracked.from_text(known.data.tags.get(TRACKED_TAG, "")) if known is not None else None
    if before == now and known is not None and known.data.tags.get(PARENT_TAG) == parent:
        return "unchanged", 0
    outcome: Outcome = "added" if known is None else "updated"
    if known is not None and before is not None and _has_dropped_records(before, snapshot):
        client.delete_run(known.info.run_id)
        known, before = None, None
    metrics = [*_step_metrics(snapshot, before), *_evaluation_metrics(snapshot, before)]
    run = known or _create_run(client, experiment, parent, snapshot)
    identifier: str = run.info.run_id
    for parameter_batch in _batches(_parameters(snapshot) if before is None else [], _PARAMETERS_A_BATCH):
        client.log_batch(identifier, params=parameter_batch, synchronous=True)
    if before is None and (datasets := _datasets(snapshot)):
        client.log_inputs(identifier, datasets=datasets)
    for metric_batch in _batches(metrics, _METRICS_A_BATCH):
        client.log_batch(identifier, metrics=metric_batch, synchronous=True)
    for name, digest in now.artefacts.items():
        if before is None or before.artefacts.get(name) != digest:
            folder = Path(name).parent.as_posix()
            client.log_artifact(identifier, str(snapshot.run.path / name), None if folder == "." else folder)
    if now.state in OVER:
        client.set_terminated(identifier, now.state, _milliseconds(snapshot.ended))
    else:
        client.update_run(identifier, now.state)
    texts = {
        **tags(snapshot.cell, snapshot.commit, snapshot.imported),
        PARENT_TAG: parent,
        TRACKED_TAG: now.to_text(),
    }
    client.log_batch(identifier, tags=[RunTag(key, text) for key, text in texts.items()], synchronous=True)
    return outcome, len(metrics)


def _has_dropped_records(before: Tracked, snapshot: Snapshot) -> bool:
    return records_digest(snapshot.records[: before.steps]) != before.steps_digest


def _create_run(client: MlflowClient, experiment: str, parent: str, snapshot: Snapshot) -> Run:
    run_id = snapshot.cell.run_id
    return client.create_run(
        experiment,
        start_time=_milliseconds(snapshot.started),
        tags={RUN_ID_TAG: run_id, PARENT_TAG: parent},
        run_name=run_id,
    )


def _parameters(snapshot: Snapshot) -> list[Param]:
    from mlflow.entities import Param

    return [Param(key, text) for key, text in parameters(snapshot.run.config()).items()]


def _datasets(snapshot: Snapshot) -> list[DatasetInput]:
    """The sets of questions that training read, by the digests of their contents."""
    from mlflow.entities import Dataset, DatasetInput, InputTag

    provenance = snapshot.run.provenance() or {}
    return [
        DatasetInput(
            Dataset(
                name=f"{snapshot.cell.dataset}/{split}",
                digest=str(facts.get("digest", ""))[:_DIGEST_LETTERS],
                source_type="fastrl",
                source=json.dumps({"dataset": snapshot.cell.dataset, "split": split}),
                profile=json.dumps({"questions": facts.get("questions")}),
            ),
            [InputTag("mlflow.data.context", split)],
        )
        for split, facts in (provenance.get("data") or {}).items()
    ]


def _step_metrics(snapshot: Snapshot, before: Tracked | None) -> Iterator[Metric]:
    """The values of the records that MLflow lacks, each at its step and its time."""
    from mlflow.entities import Metric

    for record in snapshot.records[before.steps if before else 0 :]:
        time = record.get("time", snapshot.started)  # the record before the first step has none
        where = f"{snapshot.run.steps_path}, step {record['step']}"
        for name, value in _named(step_metrics, record, where).items():
            yield Metric(name, value, _milliseconds(time), record["step"])


def _evaluation_metrics(snapshot: Snapshot, before: Tracked | None) -> Iterator[Metric]:
    """The values of results that MLflow lacks, each at the last training step and the time of its file."""
    from mlflow.entities import Metric

    step = snapshot.records[-1]["step"] if snapshot.records else 0
    for benchmark in snapshot.benchmarks:
        if results_changed(benchmark, before, snapshot.tracked):
            path = snapshot.run.results_path(benchmark)
            results = _whole_results(snapshot, benchmark)
            for name, value in _named(evaluation_metrics, results, str(path)).items():
                yield Metric(name, value, _milliseconds(path.stat().st_mtime), step)


def _whole_results(snapshot: Snapshot, benchmark: str) -> Mapping[str, Any]:
    """A benchmark's results; once its evaluation is done, refused where a report would set the run aside."""
    stage = snapshot.run.status().get(f"evaluate-{benchmark}")
    if stage is None or stage.state != "done":
        return snapshot.run.results(benchmark) or {}
    try:
        return checked_evaluation(snapshot.run, benchmark, snapshot.cell.seed).results
    except RecordError as error:
        raise UserError(
            f"A record can't be tracked: {error.reason}.",
            str(snapshot.run.root / error.where),
            f"run the stage evaluate-{benchmark} again",
            exit_code=1,
        ) from error


def _named(
    metrics: Callable[[Mapping[str, Any]], dict[str, float]], record: Mapping[str, Any], where: str
) -> dict[str, float]:
    try:
        return metrics(record)
    except (ValueError, KeyError, AttributeError) as error:
        raise UserError(
            f"A record can't be tracked: {error}.", where, "delete the file and run its stage again", 1
        ) from error


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def _batches(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
