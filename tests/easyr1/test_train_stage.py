"""The suite's train stage in EasyR1's own environment, from a run directory to a trained policy."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from tiny_assets import Assets
from tiny_cells import cell

from experiments.run_directory import RunDirectory
from experiments.stage import EXIT_CODES

pytestmark = [pytest.mark.easyr1, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", "RAY_AUTH_MODE": "disabled"}


def test_the_stage_loads_neither_hydra_nor_evaluation_nor_tracking() -> None:
    code = (
        "import experiments.train_stage, experiments.easyr1_training, fastrl.engines.easyr1.launch, sys\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    assert not {"hydra", "lm_eval", "mlflow", "submitit"} & set(done.stdout.split())


def created(root: Path, assets: Assets, **training: Any) -> RunDirectory:
    """A run of 24 questions of the laptop's data set: six steps."""
    dataset = yaml.safe_load((ROOT / "experiments/conf/dataset/laptop_geometry.yaml").read_text())
    dataset["splits"]["sizes"] |= {"train": 24, "validation": 8}
    config = {
        **cell(
            rollouts="ars",
            selector="mdap",
            training={"max_prompt_tokens": 300, **training},
            engine={"home": os.environ.get("EASYR1_HOME")},
        ),
        "schema_version": 1,
        "dataset": dataset,
        "model": {"name": "tiny", "label": "Tiny", "kind": "hub", "path": str(assets.policy)},
        "benchmarks": {},
        "cluster": {"name": "local", "workers": None, "slurm": None},
        "tracking": {"name": "none", "uri": ""},
        "paths": {"root": str(root)},
    }
    return RunDirectory.create(root, "tiny-run", config)


def started(run: RunDirectory) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "experiments.stage", str(run.path), "train"]
    return subprocess.Popen(
        command, cwd=run.path, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def ended(stage: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit code, and what the stage printed."""
    output, _ = stage.communicate(timeout=900)
    return stage.returncode, output[-3000:]


@pytest.fixture(scope="module")
def undisturbed(assets: Assets, tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    run = created(tmp_path_factory.mktemp("undisturbed"), assets, validate_every=2, record_rollouts_every=3)
    code, output = ended(started(run))
    assert code == 0, output
    return run


def test_a_run_directory_is_trained_to_its_end(undisturbed: RunDirectory) -> None:
    assert undisturbed.status()["train"].state == "done"
    steps = undisturbed.steps()
    assert [record["step"] for record in steps] == [0, 1, 2, 3, 4, 5, 6]
    assert [record["step"] for record in steps if "val/accuracy" in record] == [0, 2, 4, 6]
    assert json.loads(undisturbed.provenance_path.read_text())["steps"] == 6
    assert (undisturbed.final_checkpoint / "model.safetensors").is_file()
    recorded = sorted(path.name for path in undisturbed.rollouts.iterdir())
    assert recorded == ["step_3.parquet", "step_6.parquet"]


def test_a_run_is_whole_though_easyr1_leaves_out_long_questions(assets: Assets, tmp_path: Path) -> None:
    """14 of 24 questions are short enough, and fill one step an epoch: a report asks for no more of them."""
    from analysis.step_frames import read_step_frame

    run = created(tmp_path, assets, max_prompt_tokens=64, validate_every=2)
    code, output = ended(started(run))
    assert code == 0, output
    assert read_step_frame(run.steps_path, "timing_s")["step"].tolist() == [0, 1, 2]
    assert json.loads(run.provenance_path.read_text())["steps"] == 2
    log = next(run.attempt_path("train", 1).glob("stdout*")).read_text()
    assert "2 steps, not 6: EasyR1 leaves out questions" in log


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR2], ids=["SIGTERM", "SIGUSR2"])
def test_a_stopped_stage_saves_and_its_next_attempt_ends_like_an_undisturbed_one(
    number: signal.Signals, undisturbed: RunDirectory, assets: Assets, tmp_path: Path
) -> None:
    run = created(tmp_path, assets, validate_every=2, record_rollouts_every=3)
    stage = started(run)
    while len(run.steps()) < 3 and stage.poll() is None:
        time.sleep(0.05)
    stage.send_signal(number)
    code, output = ended(stage)
    assert code == EXIT_CODES["preempted"] == 75, output
    assert run.status()["train"].state == "preempted"
    stopped_after = run.steps()[-1]["step"]
    assert 2 <= stopped_after < 6
    assert (run.checkpoints / f"global_step_{stopped_after}" / "actor").is_dir()

    code, output = ended(started(run))
    assert code == 0, output
    assert [record["step"] for record in run.steps()] == [0, 1, 2, 3, 4, 5, 6]
    for name in ("rollout/tokens", "select/kept", "actor/grad_norm"):
        assert [step.get(name) for step in run.steps()] == [step.get(name) for step in undisturbed.steps()]
    weights = [each.final_checkpoint / "model.safetensors" for each in (run, undisturbed)]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_a_trained_policy_that_was_not_exported_is_exported_without_a_further_step(
    undisturbed: RunDirectory, tmp_path: Path
) -> None:
    run = RunDirectory(tmp_path / "runs" / undisturbed.run_id)
    shutil.copytree(undisturbed.path, run.path)
    shutil.rmtree(run.final_checkpoint)
    run.status_path.unlink()
    code, output = ended(started(run))
    assert code == 0, output
    assert run.steps() == undisturbed.steps()
    weights = [each.final_checkpoint / "model.safetensors" for each in (run, undisturbed)]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_the_exported_policy_has_the_log_probs_of_the_trained_one(undisturbed: RunDirectory) -> None:
    """What EasyR1's actor held after the last step, against what an evaluation loads."""
    import torch
    from transformers import AutoModelForCausalLM

    exported = AutoModelForCausalLM.from_pretrained(undisturbed.final_checkpoint, torch_dtype=torch.float32)
    trained = AutoModelForCausalLM.from_config(exported.config)
    state = undisturbed.checkpoints / "global_step_6" / "actor" / "cpu_state.pt"
    trained.load_state_dict(torch.load(state, weights_only=True)["model"])
    tokens = torch.randint(4, exported.config.vocab_size, (8, 30), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        ours, theirs = (model.eval()(tokens).logits.log_softmax(-1) for model in (exported, trained))
    assert torch.equal(ours, theirs)


def test_another_run_does_not_go_on_from_a_runs_checkpoints(
    undisturbed: RunDirectory, assets: Assets, tmp_path: Path
) -> None:
    made = created(tmp_path, assets)
    run = RunDirectory(made.path.rename(made.path.with_name("other-run")))
    shutil.copytree(undisturbed.checkpoints, run.checkpoints)
    shutil.rmtree(run.final_checkpoint)
    code, _ = ended(started(run))
    assert code == EXIT_CODES["failed"]
    error = run.status()["train"].error
    assert error and "the checkpoints of the run tiny-run, and this is other-run" in error.message
