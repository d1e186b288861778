"""The local driver's workers: one fresh process a stage, forked from a server whose imports are warm.

Importing torch, transformers and lm-eval takes longer than many a stage of a small study. A fork server
imports them once; each stage then gets a process of its own, so that a crash, a leak or a `kill -9` harms it
alone.
"""

from __future__ import annotations

import contextlib
import faulthandler
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from experiments.errors import UserError
from experiments.run_directory import RunDirectory
from experiments.stage import StageOutcome, run_stage

PRELOADED = (
    "torch",
    "transformers.models.llama.modeling_llama",
    "lm_eval.evaluator",
    "experiments.train_stage",
    "experiments.evaluate_stage",
)
"""Modules that the fork server imports before the first fork."""

ORPHAN_SECONDS = 60.0
"""How long a worker whose driver died may take to save before it is killed."""

_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    # Looking for a GPU must not initialise CUDA in the fork server: no worker could use it after the fork.
    "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
}


@dataclass(frozen=True)
class Failure:
    """What a worker's work raised: the exception's class, message and traceback ("" for a UserError)."""

    kind: str
    message: str
    trace: str


@dataclass(frozen=True)
class Worker:
    """A running worker; what its work returns, or a Failure, comes through `results` before it ends."""

    process: ForkServerProcess
    results: Connection

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    @property
    def end(self) -> str:
        """How the joined process ended, such as `SIGKILL` or `exit code 1`."""
        code = self.process.exitcode
        return signal.Signals(-code).name if code is not None and code < 0 else f"exit code {code}"

    def signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)


def start_worker(work: Callable[..., Any], *arguments: Any, preloaded: Sequence[str] = PRELOADED) -> Worker:
    """Start a process that calls an importable function; the first call starts the fork server, too.

    The function's result must pickle. Raises UserError when no process can be started.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(preloaded))
    results, send_results = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(send_results, work, arguments), name=work.__name__)
    try:
        with _fork_server_surroundings():
            forkserver.ensure_running()
        process.start()
    except (EOFError, OSError) as error:
        raise UserError(
            f"No worker can be started: the process that starts them ended ({error!r}).",
            "",
            "run the same command again; if it happens again, memory may be short: try fewer --workers",
            exit_code=1,
        ) from error
    finally:
        send_results.close()
    return Worker(process, results)


def received(worker: Worker) -> Any | None:
    """What a worker's work returned, or its Failure; None when the process died before it sent either."""
    try:
        return worker.results.recv() if worker.results.poll() else None
    except EOFError:
        return None
    finally:
        worker.results.close()


def do_stage(run: Path, stage: str, stages: Mapping[str, str]) -> StageOutcome:
    """A worker's work: one stage of a run."""
    return run_stage(RunDirectory(run), stage, stages)


def _work(results: Connection, work: Callable[..., Any], arguments: Sequence[Any]) -> None:
    # A group of its own: Ctrl-C in the terminal reaches the driver alone, which asks its workers to stop.
    os.setpgid(0, 0)
    faulthandler.enable()
    threading.Thread(target=_end_with_driver, daemon=True).start()
    try:
        result = work(*arguments)
    except UserError as error:
        result = Failure(type(error).__name__, str(error), "")
    except Exception as error:
        result = Failure(type(error).__name__, str(error), traceback.format_exc())
    with contextlib.suppress(BrokenPipeError):  # nobody listens once the driver has died
        results.send(result)


def _end_with_driver() -> None:
    """Wait for the driver's end; let the stage save, as on preemption, and leave nobody working unseen."""
    driver = multiprocessing.parent_process()
    assert driver is not None
    driver.join()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(ORPHAN_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


@contextlib.contextmanager
def _fork_server_surroundings() -> Iterator[None]:
    """What the fork server inherits: one thread a worker, this import path, and Ctrl-C held back.

    A stage takes SIGINT, also one that came early, once its handlers are set.
    """
    changes = {**_ENVIRONMENT, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
