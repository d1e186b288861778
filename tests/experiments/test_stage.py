"""The stage runner: locks, attempts, logs, states, and what makes a stage done."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from counting_stage import STAGES, counting_config

from experiments.errors import UserError
from experiments.locks import acquire
from experiments.run_directory import RunDirectory
from experiments.stage import run_stage

HERE = Path(__file__).parent
PROJECT = HERE.parents[1]


def new_run(root: Path, **training: Any) -> RunDirectory:
    return RunDirectory.create(root, "grpo-s0", counting_config(**training))


def run_in_process(run: RunDirectory, stage: str) -> subprocess.Popen[str]:
    """The stage in a process of its own, which prints the outcome's state and ends with its exit code."""
    code = (
        "import sys; from pathlib import Path; from counting_stage import STAGES;"
        "from experiments.run_directory import RunDirectory; from experiments.stage import run_stage;"
        f"run = RunDirectory(Path({str(run.path)!r}));"
        f"outcome = run_stage(run, {stage!r}, STAGES, heartbeat_seconds=0.1);"
        "print(outcome.state); sys.exit(outcome.exit_code)"
    )
    environment = {**os.environ, "PYTHONPATH": f"{HERE}:{PROJECT}"}
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment)


@contextmanager
def running(run: RunDirectory, stage: str = "train", step: int = 2) -> Iterator[subprocess.Popen[str]]:
    """A stage in a process, once its training has come to a step."""
    process = run_in_process(run, stage)
    try:
        while not any(record["step"] >= step for record in run.steps()):
            assert process.poll() is None
            time.sleep(0.01)
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def values(run: RunDirectory) -> list[tuple[int, str]]:
    return [(record["step"], record["value"]) for record in run.steps()]


def undisturbed_values(root: Path, **training: Any) -> list[tuple[int, str]]:
    run = new_run(root / "undisturbed", **training)
    assert run_stage(run, "train", STAGES).state == "done"
    return values(run)


def test_a_stage_runs_once(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    first = run_stage(run, "train", STAGES)
    assert (first.state, first.attempt, first.exit_code) == ("done", 1, 0)
    before = run.steps()
    again = run_stage(run, "train", STAGES)
    assert (again.state, again.attempt) == ("done", 1)
    assert run.steps() == before


def test_an_attempt_keeps_its_output_and_surroundings(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setattr(sys, "argv", ["fastrl", "tracking.uri=https://me:hunter2@host/", "api_key=hunter2"])
    run = new_run(tmp_path)
    run_stage(run, "train", STAGES)
    folder = run.attempt_path("train", 1)
    assert "counted step 6" in (folder / "stdout.log").read_text()
    assert capfd.readouterr() == ("", "")
    environment = json.loads((folder / "env.json").read_text())
    assert environment["argv"] == ["fastrl", "tracking.uri=https://***@host/", "api_key=***"]
    assert environment["pid"] == os.getpid()
    assert "secret" not in (folder / "env.json").read_text()


def test_a_failure_is_recorded_with_class_message_and_log(tmp_path: Path) -> None:
    run = new_run(tmp_path, fail_at=3)
    outcome = run_stage(run, "train", STAGES)
    assert (outcome.state, outcome.exit_code) == ("failed", 1)
    error = run.status()["train"].error
    assert error is not None
    assert error == outcome.error
    assert (error.kind, error.message) == ("ValueError", "step 3 can't be counted")
    assert "Traceback" in error.log_tail
    assert "counting_stage.py" in error.log_tail
    assert "Traceback" in (run.attempt_path("train", 1) / "stderr.log").read_text()


def test_after_a_failure_the_next_attempt_goes_on_from_the_checkpoint(tmp_path: Path) -> None:
    run = new_run(tmp_path, fail_at=4)
    run_stage(run, "train", STAGES)
    kept = values(run)
    outcome = run_stage(run, "train", STAGES)
    assert outcome.attempt == 2
    assert values(run)[:2] == kept[:2]
    assert [step for step, _ in values(run)] == [1, 2, 3]


@pytest.mark.parametrize(
    ("number", "state", "code"),
    [
        (signal.SIGTERM, "preempted", 75),
        (signal.SIGUSR2, "preempted", 75),
        (signal.SIGINT, "interrupted", 130),
    ],
)
def test_a_signal_lets_the_stage_save_and_the_next_attempt_resume(
    tmp_path: Path, number: signal.Signals, state: str, code: int
) -> None:
    run = new_run(tmp_path, steps=40, checkpoint_every=50, seconds=0.02)
    with running(run) as process:
        process.send_signal(number)
        assert process.wait(timeout=20) == code
    entry = run.status()["train"]
    assert (entry.state, entry.error) == (state, None)
    stopped_at = len(run.steps())
    assert 2 <= stopped_at < 40
    assert run_stage(run, "train", STAGES).state == "done"
    assert f"counted step {stopped_at}\n" not in (run.attempt_path("train", 2) / "stdout.log").read_text()
    assert values(run) == undisturbed_values(tmp_path, steps=40, checkpoint_every=50)


def test_a_killed_stage_is_taken_up_again_with_no_step_lost_or_twice(tmp_path: Path) -> None:
    run = new_run(tmp_path, steps=30, checkpoint_every=4, seconds=0.02)
    with running(run, step=7) as process:
        process.kill()
        process.wait()
    assert run.status()["train"].state == "running"
    outcome = run_stage(run, "train", STAGES)
    assert (outcome.state, outcome.attempt) == ("done", 2)
    assert values(run) == undisturbed_values(tmp_path, steps=30)


def test_a_running_stage_beats_and_is_not_started_twice(tmp_path: Path) -> None:
    run = new_run(tmp_path, steps=1000, seconds=0.02)
    with running(run) as process:
        second = run_stage(run, "train", STAGES)
        assert (second.state, second.exit_code) == ("locked", 3)
        assert second.holder is not None
        assert second.holder.pid == process.pid
        first_beat = run.status()["train"].heartbeat
        while run.status()["train"].heartbeat == first_beat:
            time.sleep(0.02)
        entry = run.status()["train"]
        assert (entry.state, entry.pid, entry.attempt) == ("running", process.pid, 1)


def test_a_stage_whose_lock_was_taken_over_stops_and_leaves_the_status_alone(tmp_path: Path) -> None:
    run = new_run(tmp_path, steps=1000, seconds=0.02)
    with running(run) as process:
        run.lock_path("train").unlink()
        with acquire(run.lock_path("train")):
            assert process.wait(timeout=20) == 3
    assert run.status()["train"].state == "running"


def test_a_full_disk_fails_the_stage_with_whole_records_and_the_next_attempt_goes_on(tmp_path: Path) -> None:
    run = new_run(tmp_path, steps=60)
    pid = os.fork()
    if pid == 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        os._exit(run_stage(run, "train", STAGES).exit_code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    error = run.status()["train"].error
    assert error is not None
    assert error.kind == "WriteError"
    assert "no space left to write steps.jsonl" in error.message
    assert run.steps_path.read_bytes().endswith(b"\n")
    assert 10 < len(run.steps()) < 60
    assert run_stage(run, "train", STAGES).state == "done"
    assert values(run) == undisturbed_values(tmp_path, steps=60)


def test_attempts_never_share_a_folder_even_when_the_status_is_lost(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    run_stage(run, "train", STAGES)
    run.status_path.unlink()
    assert run_stage(run, "train", STAGES).attempt == 2
    assert len(run.steps()) == 6


def test_a_changed_benchmark_is_evaluated_again_without_training_again(tmp_path: Path) -> None:
    run = new_run(tmp_path)
    for stage in ("train", "evaluate-geometry"):
        assert run_stage(run, stage, STAGES).state == "done"
    first = run.results("geometry")
    assert first is not None
    assert run_stage(run, "evaluate-geometry", STAGES).attempt == 1
    assert run.results("geometry") == first

    changed = counting_config()
    changed["benchmarks"]["geometry"]["dataset"] = json.loads(json.dumps(changed["dataset"]))
    changed["benchmarks"]["geometry"]["dataset"]["splits"]["sizes"]["validation"] = 9
    run = RunDirectory.create(tmp_path, run.run_id, changed)
    assert run_stage(run, "evaluate-geometry", STAGES).attempt == 2
    assert run_stage(run, "train", STAGES).attempt == 1
    again = run.results("geometry")
    assert again is not None
    assert again["digests"]["data"] != first["digests"]["data"]
    assert again["decodings"] == first["decodings"]


def test_an_unknown_stage_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UserError, match='no stage "evaluate-geometri"') as refused:
        run_stage(new_run(tmp_path), "evaluate-geometri", STAGES)
    assert 'did you mean "evaluate-geometry"' in refused.value.way_out
    assert refused.value.exit_code == 2


def test_the_command_reports_and_ends_with_the_exit_code(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "experiments.stage", str(tmp_path / "absent"), "train"]
    shown = subprocess.run(command, capture_output=True, text=True, cwd=PROJECT, check=False)
    assert shown.returncode == 2
    assert "There is no run here" in shown.stderr
    assert "Traceback" not in shown.stderr
