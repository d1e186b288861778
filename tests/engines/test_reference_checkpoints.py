"""A resumed run equals an uninterrupted one bit for bit, and only whole checkpoints count."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import resource
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from tiny_policies import save_tiny_policy, tiny_policy, tiny_questions
from tiny_runs import (
    ARS,
    GRESO,
    MDAP,
    TRAINING,
    Recorder,
    method_of,
    same_weights,
    tiny_run,
)

from fastrl.engines.reference.checkpoint import (
    CheckpointError,
    checkpointed_step,
    prepare_checkpoint,
    save_final,
)
from fastrl.engines.reference.data_order import DataPosition
from fastrl.engines.reference.loop import TrainOutcome
from fastrl.engines.reference.optimizer import PolicyOptimizer
from fastrl.engines.reference.records import StepRecord
from fastrl.engines.reference.step import RunState
from fastrl.method import MethodError, initial_method_state

STATEFUL = method_of(prompts=GRESO, rollouts=ARS, selector=MDAP)


class Killed(Exception):
    """Stands for a process that dies: nothing after it runs."""


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_policy(tmp_path_factory.mktemp("policy"))


@pytest.fixture(scope="module")
def whole(policy: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Recorder]:
    """An uninterrupted run: its checkpoints and its records."""
    folder, seen = tmp_path_factory.mktemp("whole"), Recorder()
    tiny_run(policy, folder, STATEFUL, recorder=seen)
    return folder, seen


@pytest.fixture(scope="module")
def stopped(policy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoints of a run that was stopped after five of its six steps."""
    folder = tmp_path_factory.mktemp("stopped")
    tiny_run(policy, folder, STATEFUL, stop_requested=stop_after(5))
    return folder


def kill_at(step: int) -> Callable[[StepRecord], None]:
    def on_step(record: StepRecord) -> None:
        if record["step"] == step:
            raise Killed

    return on_step


def stop_after(step: int) -> Callable[[], bool]:
    """A stop request that comes once so many steps have begun."""
    asked = iter([False] * step)
    return lambda: next(asked, True)


def test_the_run_has_what_resuming_must_carry_over(whole: tuple[Path, Recorder]) -> None:
    """Else the tests below would prove little: skips, refills, changing n, an epoch's end inside a step."""
    steps = whole[1].steps
    assert sum(record["rollout/skipped"] or 0 for record in steps) > 0
    assert max(record["rollout/draws"] or 0 for record in steps) > 1
    assert len({record["rollout/n"] for record in steps}) > 1
    assert len({record["epoch"] for record in steps}) > 2


@pytest.mark.parametrize("step", [1, 3, 4])
def test_a_stopped_and_resumed_run_equals_an_uninterrupted_one(
    step: int, policy: Path, whole: tuple[Path, Recorder], tmp_path: Path
) -> None:
    seen = Recorder()
    first = tiny_run(policy, tmp_path, STATEFUL, recorder=seen, stop_requested=stop_after(step))
    assert first == TrainOutcome(step=step, finished=False)
    assert checkpointed_step(tmp_path) == step
    assert tiny_run(policy, tmp_path, STATEFUL, recorder=seen) == TrainOutcome(step=6, finished=True)
    assert seen.steps == whole[1].steps
    assert [record["step"] for record in seen.records].count(0) == 1
    assert same_weights(tmp_path, whole[0])


def test_stopping_at_the_end_of_an_epoch_loses_nothing(policy: Path, tmp_path: Path) -> None:
    """Twelve questions, four a step: every third step ends a pass over the data."""
    runs = {}
    for name, stop in (("whole", 99), ("resumed", 3)):
        runs[name] = Recorder()
        method = method_of(rollouts=ARS, selector=MDAP)
        arguments = {"questions": tiny_questions(12), "recorder": runs[name]}
        tiny_run(policy, tmp_path / name, method, **arguments, stop_requested=stop_after(stop))
        tiny_run(policy, tmp_path / name, method, **arguments)
    assert [record["epoch"] for record in runs["whole"].steps] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert len({record["rollout/n"] for record in runs["whole"].steps}) > 1
    assert runs["resumed"].steps == runs["whole"].steps
    assert same_weights(tmp_path / "resumed", tmp_path / "whole")


@pytest.mark.parametrize("step", [1, 4, 6])
def test_a_killed_run_goes_on_from_its_last_checkpoint(
    step: int, policy: Path, whole: tuple[Path, Recorder], tmp_path: Path
) -> None:
    """Killed between a step's record and its checkpoint: the record is cut back, the step done again."""
    seen = Recorder()
    with pytest.raises(Killed):
        tiny_run(policy, tmp_path, STATEFUL, recorder=seen, on_step=kill_at(step))
    done = checkpointed_step(tmp_path)
    assert done == (step - 1) // 2 * 2
    seen.records = [record for record in seen.records if (record["step"] or 0) <= done and done]
    tiny_run(policy, tmp_path, STATEFUL, recorder=seen)
    assert seen.steps == whole[1].steps
    assert same_weights(tmp_path, whole[0])


def test_a_finished_run_returns_at_once(policy: Path, whole: tuple[Path, Recorder]) -> None:
    seen = Recorder()
    assert tiny_run(policy, whole[0], STATEFUL, recorder=seen) == TrainOutcome(6, finished=True)
    assert not seen.records


def test_a_run_killed_before_its_final_policy_only_saves_that(
    policy: Path, whole: tuple[Path, Recorder], tmp_path: Path
) -> None:
    shutil.copytree(whole[0], tmp_path, dirs_exist_ok=True)
    shutil.rmtree(tmp_path / "final")
    seen = Recorder()
    assert tiny_run(policy, tmp_path, STATEFUL, recorder=seen).finished
    assert not seen.records
    assert same_weights(tmp_path, whole[0])


def truncate(folder: Path) -> None:
    file = folder / "policy.safetensors"
    file.write_bytes(file.read_bytes()[:-100])


def flip_a_bit(folder: Path) -> None:
    file = folder / "optimizer.pt"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def remove_the_state(folder: Path) -> None:
    (folder / "state.json").unlink()


def empty_the_state(folder: Path) -> None:
    (folder / "state.json").write_text("")


@pytest.mark.parametrize("damage", [truncate, flip_a_bit, remove_the_state, empty_the_state])
def test_a_damaged_checkpoint_is_passed_over_and_named(
    damage: Callable[[Path], None], stopped: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.copytree(stopped, tmp_path, dirs_exist_ok=True)
    assert checkpointed_step(tmp_path) == 5
    damage(tmp_path / "step_5")
    assert checkpointed_step(tmp_path) == 4
    assert "step_5 is unusable" in caplog.text


def test_a_run_goes_on_from_before_a_damaged_checkpoint(
    policy: Path, whole: tuple[Path, Recorder], stopped: Path, tmp_path: Path
) -> None:
    shutil.copytree(stopped, tmp_path, dirs_exist_ok=True)
    truncate(tmp_path / "step_5")
    seen = Recorder()
    tiny_run(policy, tmp_path, STATEFUL, recorder=seen)
    assert seen.steps == whole[1].steps[4:]
    assert same_weights(tmp_path, whole[0])
    assert sorted(folder.name for folder in tmp_path.iterdir()) == ["final", "step_4", "step_6"]


def test_a_half_written_checkpoint_is_never_seen(policy: Path, stopped: Path, tmp_path: Path) -> None:
    shutil.copytree(stopped, tmp_path, dirs_exist_ok=True)
    (tmp_path / ".step_6.writing").mkdir()
    (tmp_path / ".step_6.writing" / "policy.safetensors").write_bytes(b"half")
    assert checkpointed_step(tmp_path) == 5
    assert tiny_run(policy, tmp_path, STATEFUL).finished
    assert not list(tmp_path.glob(".*"))


def test_without_any_whole_checkpoint_the_run_starts_anew(
    policy: Path, whole: tuple[Path, Recorder], tmp_path: Path
) -> None:
    (tmp_path / "step_4").mkdir(parents=True)
    seen = Recorder()
    assert checkpointed_step(tmp_path) == 0
    tiny_run(policy, tmp_path, STATEFUL, recorder=seen)
    assert seen.steps == whole[1].steps


def test_only_the_newest_checkpoints_stay(policy: Path, tmp_path: Path) -> None:
    training = dataclasses.replace(TRAINING, checkpoint_every=1, keep_checkpoints=3)
    tiny_run(policy, tmp_path, STATEFUL, training=training)
    assert sorted(folder.name for folder in tmp_path.iterdir()) == ["final", "step_4", "step_5", "step_6"]


@contextlib.contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """A limit on file size fails a write as a full disk does, in the middle of the file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path) -> None:
    model = tiny_policy("llama").model
    optimizer = PolicyOptimizer(model, 1e-3, (0.9, 0.999), 0.0)
    state = RunState(2, DataPosition(0, 4), initial_method_state(STATEFUL))
    with files_of_at_most(2000), pytest.raises(CheckpointError, match=r"cannot write .*step_2: .*free space"):
        prepare_checkpoint(tmp_path, STATEFUL, state, 0, optimizer)
    assert not list(tmp_path.iterdir())
    assert checkpointed_step(tmp_path) == 0


def test_a_disk_that_is_full_at_the_tokenizer_leaves_no_final_policy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = tiny_policy("llama")
    monkeypatch.setattr(policy.model, "save_pretrained", lambda folder: None)
    with files_of_at_most(300), pytest.raises(CheckpointError, match=r"cannot write .*final: .*free space"):
        save_final(tmp_path, policy)
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_of_another_run_is_refused(policy: Path, stopped: Path, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"step_5 has seed 0, this run has 1"):
        tiny_run(policy, stopped, STATEFUL, seed=1)
    with pytest.raises(MethodError, match=r"rollouts state belongs to Ars"):
        tiny_run(policy, stopped, method_of(prompts=GRESO))
    other = save_tiny_policy(tmp_path / "other", "llama-gqa")
    with pytest.raises(CheckpointError, match=r"weights of another policy"):
        tiny_run(other, stopped, STATEFUL)


def test_checkpoints_hold_tensors_and_json_alone(stopped: Path) -> None:
    folder = stopped / "step_5"
    assert sorted(file.name for file in folder.iterdir()) == [
        "optimizer.pt",
        "policy.safetensors",
        "state.json",
    ]
    torch.load(folder / "optimizer.pt", weights_only=True)
    assert json.loads((folder / "state.json").read_text())["step"] == 5
