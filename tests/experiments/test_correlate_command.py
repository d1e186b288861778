"""`fastrl correlate` on recorded rollouts and a tiny policy; and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from recorded_run import QUESTIONS, N, recorded_run, step_rollouts

from experiments.cli import main
from experiments.offline.gradient_pairs import last_groups
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


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return recorded_run(tmp_path)


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
