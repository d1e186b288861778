"""Submitting to a real Slurm: what is sent, joined and left, and what it comes to."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from rehearsal import (
    EVALUATE,
    TRAIN,
    cell_config,
    expected_of,
    look,
    outcome_of,
    run_of,
    send,
    states,
    until,
)

from experiments.errors import UserError
from experiments.identity import run_id
from slurm.cancel import cancel
from slurm.client import call
from slurm.ledger import REPORT, submissions, write_submission

pytestmark = pytest.mark.slurm
DONE = {TRAIN: "done", EVALUATE: "done"}
HELD = {"extra": {"begin": "now+1hour"}}
"""Settings of jobs that stay in the queue."""


def test_a_study_is_sent_as_arrays_that_wait_for_each_other_and_ends_by_itself(
    cluster: None, tmp_path: Path
) -> None:
    configs = [cell_config(seed, changes=HELD) for seed in range(3)]
    outcome = send(tmp_path, configs)
    train, evaluate, report = (sent.array for sent in outcome.arrays)
    assert [len(array.tasks) for array in (train, evaluate, report)] == [3, 3, 1]
    assert evaluate.depends_on == f"aftercorr:{train.job_id}"
    assert report.depends_on == f"afterany:{train.job_id},afterany:{evaluate.job_id}"
    again = send(tmp_path, configs)
    assert again.arrays == ()
    assert len(again.decision.joined) == 6
    for array in (train, evaluate, report):
        call(["scontrol", "update", f"jobid={array.job_id}", "starttime=now"])
    until(lambda: states(look(tmp_path, configs)) == [DONE] * 3, "the study done")
    for config in configs:
        assert outcome_of(tmp_path, config) == expected_of(config)
    last = send(tmp_path, configs)
    assert last.decision.done == 6
    assert [sent.array.tasks[0].stage for sent in last.arrays] in ([], [REPORT])
    assert len(list(submissions(tmp_path))) <= 2


def test_a_larger_study_than_an_array_may_be_is_sent_in_several(cluster: None, tmp_path: Path) -> None:
    configs = [cell_config(seed, changes={**HELD, "max_array_size": 2}) for seed in range(3)]
    outcome = send(tmp_path, configs)
    assert [sorted(sent.array.tasks) for sent in outcome.arrays] == [[0, 1], [0], [0, 1], [0], [0]]
    assert len(cancel(tmp_path, lambda submission, run, stage: True)) == 7
    assert states(look(tmp_path, configs)) == [{TRAIN: "cancelled", EVALUATE: "cancelled"}] * 3


def test_limit_sends_the_next_cells_each_time(cluster: None, tmp_path: Path) -> None:
    configs = [cell_config(seed, changes=HELD) for seed in range(3)]
    for count in (1, 2):
        send(tmp_path, configs, limit=1)
        shown = states(look(tmp_path, configs))
        assert [cell[TRAIN] for cell in shown] == ["queued"] * count + ["pending"] * (3 - count)
    assert len(cancel(tmp_path, lambda submission, run, stage: stage == TRAIN)) == 2
    until(
        lambda: states(look(tmp_path, configs))[0] == {TRAIN: "cancelled", EVALUATE: "skipped"},
        "no job waiting for what can't happen",
    )
    cancel(tmp_path, lambda submission, run, stage: True)


def test_a_submitter_that_died_before_it_wrote_down_a_job_id_left_no_job_unknown(
    cluster: None, tmp_path: Path
) -> None:
    configs = [cell_config(0, changes=HELD)]
    send(tmp_path, configs)
    (submission,) = submissions(tmp_path)
    forgotten = [replace(array, job_id=None) for array in submission.arrays]
    write_submission(replace(submission, arrays=tuple(forgotten)))
    assert states(look(tmp_path, configs)) == [{TRAIN: "queued", EVALUATE: "queued"}]
    assert send(tmp_path, configs).decision.send == ()
    assert len(cancel(tmp_path, lambda submission, run, stage: True)) == 3


def test_an_evaluation_that_was_cancelled_joins_a_training_in_the_queue(
    cluster: None, tmp_path: Path
) -> None:
    configs = [cell_config(seed, "wait") for seed in range(2)]
    send(tmp_path, configs)
    cancel(tmp_path, lambda submission, run, stage: stage == EVALUATE and run == run_id(configs[1]))
    until(lambda: states(look(tmp_path, configs))[1][EVALUATE] == "cancelled", "the evaluation cancelled")
    again = send(tmp_path, configs)
    first = next(submissions(tmp_path)).arrays[0]
    assert again.arrays[0].array.depends_on == f"aftercorr:{first.job_id}"
    assert list(again.arrays[0].array.tasks) == [1]
    job = f"{first.job_id}_"
    for index, config in enumerate(configs):
        until(lambda: len(run_of(tmp_path, config).steps()) >= 3, "three steps")  # noqa: B023
        call(["scancel", "--batch", "--signal=USR2", f"{job}{index}"])
    until(lambda: states(look(tmp_path, configs)) == [DONE] * 2, "the study done")


def test_a_canary_holds_the_rest_back_until_its_first_step(cluster: None, tmp_path: Path) -> None:
    configs = [cell_config(seed) for seed in range(2)]
    send(tmp_path, configs, canary=True)
    until(lambda: states(look(tmp_path, configs)) == [DONE] * 2, "the study done")
    canary, other = (run_of(tmp_path, config) for config in configs)
    started = json.loads((other.attempt_path(TRAIN, 1) / "env.json").read_text())["started"]
    assert started > canary.steps()[0]["time"]


def test_a_canary_that_can_not_start_takes_the_rest_with_it(cluster: None, tmp_path: Path) -> None:
    configs = [cell_config(seed, changes={"setup": ["echo no such module >&2; exit 9"]}) for seed in range(3)]
    send(tmp_path, configs, canary=True)
    ended = {TRAIN: "skipped", EVALUATE: "skipped"}
    until(
        lambda: states(look(tmp_path, configs)) == [{TRAIN: "died", EVALUATE: "skipped"}, ended, ended],
        "the rest not waiting any more",
    )
    verdict = look(tmp_path, configs).cells[0].stages[TRAIN].verdict
    assert "no such module" in verdict.detail
    mended = [cell_config(seed) for seed in range(3)]
    send(tmp_path, mended, retry="lost")
    until(lambda: states(look(tmp_path, mended)) == [DONE] * 3, "the study done")


def test_hostile_names_and_a_secret_in_the_environment(
    cluster: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "hf_aVerySecretTokenThatNobodyMaySee"
    monkeypatch.setenv("HF_TOKEN", secret)
    root = tmp_path / 'it\'s $(touch pwned) "q" `touch pwned` ü\n#SBATCH --uid=0 ; touch pwned'
    name = "x'; touch pwned; $(touch pwned) %A\n統計"
    configs = [cell_config(0, changes={"environment.VALUE": "$(touch pwned) 'x'"})]
    send(root, configs, name)
    until(lambda: states(look(root, configs, name)) == [DONE], "the study done")
    assert outcome_of(root, configs[0]) == expected_of(configs[0])
    assert not list(tmp_path.rglob("pwned"))
    files = [path for path in tmp_path.rglob("*") if path.is_file() and "code" not in path.parts]
    assert len(files) > 8
    assert not [path for path in files if secret.encode() in path.read_bytes()]


def test_a_job_runs_the_code_as_it_was_when_it_was_sent(cluster: None, tmp_path: Path) -> None:
    configs = [cell_config(0)]
    send(tmp_path, configs)
    until(lambda: states(look(tmp_path, configs)) == [DONE], "the study done")
    (submission,) = submissions(tmp_path)
    assert Path(submission.code).parent == tmp_path / "slurm" / "code"
    log = (run_of(tmp_path, configs[0]).attempt_path(TRAIN, 1) / "stdout.log").read_text()
    assert f"code: {submission.code}/experiments/stage_function.py" in log


@pytest.mark.parametrize("name", ["100%", "back\\slash"])
def test_a_folder_that_slurm_can_not_write_logs_to_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="a letter that Slurm replaces"):
        send(tmp_path / name, [cell_config(0)])
    assert not list(tmp_path.iterdir())
