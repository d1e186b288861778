"""Before a study's first cell: its starting policies are made sure of, once, and its questions checked."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from experiments.atomic_files import write_error
from experiments.attempt import log_tail, output_to
from experiments.identity import canonical_json
from experiments.local.worker import Failure, Worker, received, start_worker
from experiments.status import StageError

_POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Start:
    """What cells start from: a model config and the data-set config it is made for, as canonical JSON."""

    model: str
    dataset: str

    @property
    def name(self) -> str:
        name: str = json.loads(self.model)["name"]
        return name


def start_of(config: Mapping[str, Any]) -> Start:
    """What a resolved config starts from; equal for cells that share it."""
    return Start(canonical_json(config["model"]), canonical_json(config["dataset"]))


def prepare(
    starts: Iterable[Start],
    models: Path,
    slots: int,
    preloaded: Sequence[str],
    say: Callable[[str], None],
    stop_requested: Callable[[], bool],
) -> dict[Start, StageError]:
    """Prepare each start in a process of its own, `slots` at a time; returns what went wrong, by start.

    models: the folder of built policies. say: gets the lines that a preparation announces.
    """
    waiting = list(dict.fromkeys(starts))
    running: dict[Start, tuple[Worker, Connection]] = {}
    errors: dict[Start, StageError] = {}
    while (waiting or running) and not stop_requested():
        while waiting and len(running) < slots:
            start = waiting.pop(0)
            lines, send_lines = Pipe(duplex=False)
            worker = start_worker(_do_preparation, start, models, send_lines, preloaded=preloaded)
            send_lines.close()
            running[start] = worker, lines
        wait([worker.results for worker, _ in running.values()], timeout=_POLL_SECONDS)
        for start, (worker, lines) in list(running.items()):
            ended = worker.results.poll()
            for line in _received_lines(lines):
                say(f"{start.name}: {line}")
            if ended:
                error = _error(received(worker), _log_folder(models, start), worker)
                if error is not None:
                    errors[start] = error
                lines.close()
                del running[start]
    for worker, _ in running.values():
        worker.signal(signal.SIGTERM)
        worker.process.join()
    return errors


def _do_preparation(start: Start, models: Path, lines: Connection) -> bool:
    """A worker's work; True when it is done."""
    from eval.datasets import load_questions
    from experiments.policies.prepare import prepare_policy

    model, dataset = json.loads(start.model), json.loads(start.dataset)
    log = _log_folder(models, start)
    try:
        log.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(log, error) from error
    with output_to(log):
        for split in (dataset["train_split"], dataset["validation_split"]):
            load_questions(dataset, split)
        prepare_policy(model, dataset, models, lines.send)
    return True


def _log_folder(models: Path, start: Start) -> Path:
    return models / "logs" / start.name


def _received_lines(lines: Connection) -> list[str]:
    received_lines: list[str] = []
    try:
        while lines.poll():
            received_lines.append(lines.recv())
    except EOFError:
        pass
    return received_lines


def _error(result: Any, log: Path, worker: Worker) -> StageError | None:
    worker.process.join()
    if isinstance(result, Failure):
        return StageError(result.kind, result.message, result.trace)
    if result is None:
        message = f"the process that prepared the policy died ({worker.end}); its log: {log}"
        return StageError("WorkerDied", message, log_tail(log))
    return None
