"""`fastrl correlate` on recorded rollouts and tiny policies that read, or see; and what it refuses."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from recorded_run import QUESTIONS, N, recorded_run, step_rollouts

from experiments.cli import main
from experiments.offline.gradient_pairs import last_groups
from experiments.policies.prepare import prepare_policy
from experiments.run_directory import RunDirectory
from fastrl.replay.recorded import RecordedStep


def tiny_llama(folder: Path, words: int) -> Path:
    """A Llama of random weights with so many words, to which the laptop prompts are unknown words."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    vocabulary = {"<pad>": 0, "<eos>": 1, **{f"w{i}": i for i in range(2, words)}}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="<eos>").save_pretrained(
        folder
    )
    config = LlamaConfig(
        vocab_size=words,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=256,
        eos_token_id=1,
        bos_token_id=None,
        pad_token_id=0,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


SEEING = (
    "engine=reference_vision",
    "benchmark=[]",
    "dataset.splits.sizes.train=8",
    "model.tokenizer.corpus_size=1500",
    *(f"model.sft.{setting}" for setting in ("steps=4", "caption_steps=2", "batch_size=4", "warmup_steps=2")),
)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return recorded_run(tmp_path)


def seeing_run(root: Path, *overrides: str) -> RunDirectory:
    """A run on figures, whose policy has hardly been trained."""
    run = recorded_run(root, policy=[*SEEING, f"dataset.root={root}/data", *overrides])
    config = run.config()
    policy = prepare_policy(config["model"], config["dataset"], root / "models", lambda line: None)
    shutil.copytree(policy, run.final_checkpoint)
    return run


@pytest.fixture
def seeing(tmp_path: Path) -> RunDirectory:
    return seeing_run(tmp_path / "seeing")


@pytest.mark.parametrize("gradients", ["exact", "head"])
def test_the_command_correlates_pairs_of_equal_reward(
    gradients: str, run: RunDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, out = tiny_llama(tmp_path / "model", 18), tmp_path / "out"
    words = ["correlate", str(run.path), "--model", str(model), "--steps", "2:3", "--resamples", "20"]
    assert main([*words, "--gradients", gradients, "--check", "2", "--output", str(out)]) == 0
    record = json.loads((out / "correlate.json").read_text())
    assert record["steps"] == [2, 3]
    assert record["groups"] + record["constant_groups"] == 2 * QUESTIONS
    assert record["trajectories"] == N * record["groups"]
    subsets = {entry["subset"]: entry for entry in record["correlations"]}
    assert subsets["all"]["pairs"] == record["pairs"]
    assert subsets["both correct"]["pairs"] + subsets["both wrong"]["pairs"] == record["pairs"]
    assert (record["head_error"] is None) == (gradients == "exact")
    text = capsys.readouterr().out
    assert "both wrong, without duplicates" in text
    assert (out / "correlate.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("gradients", ["exact", "head"])
def test_a_run_with_images_is_correlated_by_its_final_policy(
    gradients: str, seeing: RunDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ["correlate", str(seeing.path), "--gradients", gradients, "--resamples", "20"]
    assert main([*words, "--output", str(out)]) == 0
    record = json.loads((out / "correlate.json").read_text())
    assert record["model"] == "final"
    assert record["pairs"] > 20
    assert record["pairs_without_gradient"] == 0
    assert "gradients: " in capsys.readouterr().out
    assert (out / "correlate.png").read_bytes().startswith(b"\x89PNG")


def test_a_vision_tower_that_was_trained_is_part_of_the_gradient(tmp_path: Path) -> None:
    found = []
    for frozen in ("true", "false"):
        run = seeing_run(tmp_path / frozen, f"engine.freeze_vision_tower={frozen}")
        out = tmp_path / f"out-{frozen}"
        assert main(["correlate", str(run.path), "--resamples", "2", "--output", str(out)]) == 0
        found.append(json.loads((out / "correlate.json").read_text())["correlations"][0])
    assert found[0]["pairs"] == found[1]["pairs"]
    assert found[0]["pearson"]["value"] != pytest.approx(found[1]["pearson"]["value"], abs=1e-4)


def test_a_model_that_reads_text_alone_does_not_see_a_runs_images(
    seeing: RunDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tiny_llama(tmp_path / "model", 18)
    assert main(["correlate", str(seeing.path), "--model", str(model)]) == 2
    error = capsys.readouterr().err
    assert "has images, but the model reads text alone" in error
    assert "name the image-text policy" in error


def test_a_model_that_sees_reads_a_run_on_text_too(
    run: RunDirectory, seeing: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["correlate", str(run.path), "--model", str(seeing.final_checkpoint), "--resamples", "2"]
    assert main(words) == 0
    assert "both wrong, without duplicates" in capsys.readouterr().out


def test_tokens_that_are_other_words_to_the_model_are_refused(
    run: RunDirectory, seeing: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny_llama(run.final_checkpoint, 18)
    assert main(["correlate", str(run.path), "--resamples", "2"]) == 0
    assert main(["correlate", str(run.path), "--model", str(seeing.final_checkpoint)]) == 2
    error = capsys.readouterr().err
    assert "The token 2 is 'w2' to the run's policy, and" in error
    assert "name a model with the tokenizer of the policy that sampled" in error


def file_of(path: Path, prompt: str) -> Path:
    """Five responses to one prompt, as another trainer logs them."""
    responses = (([3, 4, 5], 1.0), ([3, 4], 1.0), ([6, 3], 1.0), ([9], 0.0), ([8, 9], 0.0))
    rows = [
        {"step": 1, "group": 0, "prompt": prompt, "completion_ids": tokens, "reward": reward}
        for tokens, reward in responses
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_model_that_sees_reads_the_prompts_of_a_file(
    seeing: RunDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = file_of(tmp_path / "dump.jsonl", "Find the perimeter.")
    words = ["correlate", str(file), "--model", str(seeing.final_checkpoint), "--resamples", "2"]
    assert main(words) == 0
    assert "1 groups, 5 trajectories" in capsys.readouterr().out


@pytest.mark.parametrize("image", ["<image>", "<|vision_start|><|image_pad|><|vision_end|>"])
def test_a_file_whose_prompts_need_images_is_refused(
    image: str, seeing: RunDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = file_of(tmp_path / "dump.jsonl", f"{image}Find the perimeter.")
    assert main(["correlate", str(file), "--model", str(seeing.final_checkpoint)]) == 2
    error = capsys.readouterr().err
    assert "A prompt can't be read as text alone" in error
    assert "files hold no images" in error


def test_the_sketchs_error_need_not_be_measured(
    run: RunDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then no exact gradient is computed, which a large model has no memory for."""
    monkeypatch.setattr("experiments.offline.gradient_pairs.gradient_cosines", None)
    model = tiny_llama(tmp_path / "model", 18)
    words = ["correlate", str(run.path), "--model", str(model), "--resamples", "2"]
    assert main([*words, "--gradients", "head", "--check", "0"]) == 0
    assert "their error was not measured" in capsys.readouterr().out


def test_rollouts_of_another_vocabulary_are_refused(
    run: RunDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tiny_llama(tmp_path / "model", 12)
    assert main(["correlate", str(run.path), "--model", str(model)]) == 2
    assert "but the model has 12 tokens" in capsys.readouterr().err


def test_a_run_without_rollouts_names_the_setting(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = recorded_run(tmp_path, recorded=False)
    assert main(["correlate", str(run.path)]) == 2
    assert "training.record_rollouts_every=1" in capsys.readouterr().err


def test_a_run_without_a_final_policy_asks_for_a_model(
    run: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["correlate", str(run.path)]) == 2
    assert "No model is named" in capsys.readouterr().err


def test_steps_without_differing_rewards_are_refused(
    run: RunDirectory, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["correlate", str(run.path), "--model", "unused", "--steps", "90:"]) == 2
    assert "No group of these steps has different rewards" in capsys.readouterr().err


def test_the_newest_steps_that_hold_enough_are_taken() -> None:
    ids = ("a", "b", "c", "d")
    steps = [
        RecordedStep(step, 0, rollouts, rollouts.rewards)
        for step in range(1, 6)
        for rollouts in [step_rollouts(step, ids)]
    ]
    groups, _ = last_groups(steps, None, 4, QUESTIONS + 1, 0)
    assert {group.step for group in groups} == {3, 4}
    assert len(groups) == QUESTIONS + 1
