"""Training an image-text policy: methods, the tower frozen or not, resuming, and what comes out."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tiny_policies import letter_reward, save_tiny_policy, tiny_questions
from tiny_runs import (
    ARS,
    ENGINE,
    GRESO,
    MDAP,
    TRAINING,
    Recorder,
    final_weights,
    method_of,
    same_weights,
    tiny_run,
    without_times,
)
from tiny_vision_policies import mixed_questions, noise, save_tiny_vision_policy, vision_questions
from torch import Tensor
from transformers import AutoModelForImageTextToText

from fastrl.engines.reference.image_features import ImageFeatures, vision_parameters
from fastrl.engines.reference.loop import TrainOutcome
from fastrl.engines.reference.policy import PolicyError, load_policy, read_prompts
from fastrl.engines.reference.qwen_processor import load_qwen_processor
from fastrl.engines.reference.run import prepare_run
from fastrl.engines.reference.settings import VisionEngineSettings, engine_settings
from fastrl.method import Method
from fastrl.rollouts import Question

ROOT = Path(__file__).parents[2]
VISION_TRAINING = dataclasses.replace(TRAINING, max_prompt_tokens=200, validate_every=0, epochs=2)
FROZEN = VisionEngineSettings(**dataclasses.asdict(ENGINE), freeze_vision_tower=True, image_cache_mb=8)
TRAINED = dataclasses.replace(FROZEN, freeze_vision_tower=False)
FASTRL = method_of(prompts=GRESO, rollouts=ARS, selector=MDAP)


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_vision_policy(tmp_path_factory.mktemp("policy") / "qwen")


def vision_run(
    policy: Path,
    checkpoints: Path,
    method: Method,
    engine: VisionEngineSettings = FROZEN,
    recorder: Recorder | None = None,
    stop_requested: Callable[[], bool] = lambda: False,
    questions: list[Question] | None = None,
    seed: int = 0,
) -> TrainOutcome:
    return tiny_run(
        policy,
        checkpoints,
        method,
        training=VISION_TRAINING,
        engine=engine,
        questions=questions or [*mixed_questions(), *vision_questions(5, "more")],
        recorder=recorder,
        stop_requested=stop_requested,
        seed=seed,
    )


def tower(folder: Path) -> dict[str, Tensor]:
    return {
        name: value for name, value in load_file(folder / "model.safetensors").items() if "visual" in name
    }


def checksum(weights: dict[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for name in sorted(weights):
        digest.update(name.encode() + weights[name].numpy().tobytes())
    return digest.hexdigest()


@pytest.mark.parametrize("engine", [FROZEN, TRAINED], ids=["frozen", "trained"])
def test_fastrl_with_tau_zero_and_a_fixed_schedule_is_grpo_bit_for_bit(
    engine: VisionEngineSettings, policy: Path, tmp_path: Path
) -> None:
    grpo, fastrl = Recorder(), Recorder()
    vision_run(policy, tmp_path / "grpo", method_of(), engine, grpo)
    vision_run(policy, tmp_path / "fastrl", method_of(selector={**MDAP, "tau": 0.0}), engine, fastrl)
    assert len(grpo.steps) == 4
    assert fastrl.steps == grpo.steps
    assert same_weights(tmp_path / "grpo", tmp_path / "fastrl")


@pytest.mark.parametrize("architecture", ["llava", "idefics", "gemma"])
def test_other_architectures_train(architecture: str, tmp_path: Path) -> None:
    start = save_tiny_vision_policy(tmp_path / "start", architecture)
    seen = Recorder()
    method = method_of(rollouts=ARS, selector=MDAP)
    assert vision_run(start, tmp_path / "run", method, recorder=seen).finished
    assert all(record["actor/updates"] == 2 for record in seen.steps)
    before = AutoModelForImageTextToText.from_pretrained(start)
    trained = dict(AutoModelForImageTextToText.from_pretrained(tmp_path / "run/final").named_parameters())
    frozen = {name for name, _ in vision_parameters(before)}
    for name, value in before.named_parameters():
        assert torch.equal(value, trained[name]) == (name in frozen)
    assert any("projector" in name or "connector" in name for name in frozen)


def stop_after(step: int) -> Callable[[], bool]:
    asked = iter([False] * step)
    return lambda: next(asked, True)


@pytest.mark.parametrize("engine", [FROZEN, TRAINED], ids=["frozen", "trained"])
def test_a_stopped_run_goes_on_as_if_nothing_had_happened(
    engine: VisionEngineSettings, policy: Path, tmp_path: Path
) -> None:
    whole, parts = Recorder(), Recorder()
    vision_run(policy, tmp_path / "whole", FASTRL, engine, whole)
    for stop in (1, 2):
        outcome = vision_run(policy, tmp_path / "parts", FASTRL, engine, parts, stop_after(stop))
        assert not outcome.finished
    assert vision_run(policy, tmp_path / "parts", FASTRL, engine, parts).finished
    assert [without_times(record) for record in parts.records] == [
        without_times(record) for record in whole.records
    ]
    assert same_weights(tmp_path / "parts", tmp_path / "whole")


def test_too_small_a_cache_changes_nothing(policy: Path, tmp_path: Path) -> None:
    runs = {}
    for megabytes in (8, 0):
        runs[megabytes] = Recorder()
        engine = dataclasses.replace(FROZEN, image_cache_mb=megabytes)
        vision_run(policy, tmp_path / str(megabytes), FASTRL, engine, runs[megabytes])
    assert runs[0].steps == runs[8].steps
    assert same_weights(tmp_path / "0", tmp_path / "8")


def test_a_frozen_tower_is_no_part_of_the_optimizer_and_does_not_change(policy: Path, tmp_path: Path) -> None:
    vision_run(policy, tmp_path, method_of())
    assert checksum(tower(tmp_path / "final")) == checksum(tower(policy))
    saved = load_file(max(tmp_path.glob("step_*")) / "policy.safetensors")
    assert saved and not any("visual" in name for name in saved)
    state = torch.load(max(tmp_path.glob("step_*")) / "optimizer.pt", weights_only=True)
    assert len(state["state"]) == len(saved)
    before = load_file(policy / "model.safetensors")
    for name, value in final_weights(tmp_path).items():
        assert torch.equal(value, before[name]) == ("visual" in name)


def test_a_trained_tower_changes(policy: Path, tmp_path: Path) -> None:
    vision_run(policy, tmp_path, method_of(), TRAINED)
    before = tower(policy)
    after = tower(tmp_path / "final")
    assert all(not torch.equal(after[name], value) for name, value in before.items())
    assert any("visual" in name for name in load_file(max(tmp_path.glob("step_*")) / "policy.safetensors"))


@pytest.mark.parametrize("frozen", [True, False])
def test_the_tower_sees_each_image_as_seldom_as_it_can(
    frozen: bool, policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frozen: once in a run, for policy and reference. Trained: once a pass over a batch's questions."""
    seen: list[int] = []
    original = ImageFeatures._tower
    monkeypatch.setattr(
        ImageFeatures, "_tower", lambda self, prompts: (seen.append(len(prompts)), original(self, prompts))[1]
    )
    engine = dataclasses.replace(FROZEN if frozen else TRAINED, micro_batch=12)
    vision_run(policy, tmp_path, method_of(), engine, questions=vision_questions(4))
    if frozen:
        assert len(seen) == sum(seen) == 4
    else:
        # the check's two; the reference's four; a step's sampling and old log-probs; two updates of 12 rows
        assert sum(seen) <= 2 + 4 + 2 * (4 + 4 + 2 * 4)


def test_the_final_policy_can_be_loaded_with_its_processor(policy: Path, tmp_path: Path) -> None:
    vision_run(policy, tmp_path, method_of())
    final = tmp_path / "final"
    loaded = load_policy(final, "cpu", "float32")
    start = load_policy(policy, "cpu", "float32")
    for one, other in zip(
        *(read_prompts(each, mixed_questions(), 200) for each in (loaded, start)), strict=True
    ):
        assert list(one) == list(other)
        assert all(torch.equal(one.pixels[name], value) for name, value in other.pixels.items())  # type: ignore[attr-defined]
    texts = [
        {file.name: file.read_text() for file in each.glob("*.js*") if "gen" not in file.name}
        for each in (final, policy)
    ]
    assert (
        texts[0] == texts[1] and "config.json" in texts[0]
    )  # as another version of transformers may read them
    processor = load_qwen_processor(final)
    assert processor.chat_template == load_qwen_processor(policy).chat_template
    named = json.loads((final / "processor_config.json").read_text())["processor_class"]
    assert named == "Qwen2_5_VLProcessor"  # what EasyR1 and lm-eval load where torchvision is installed
    assert (final / "video_preprocessor_config.json").is_file()


# What does not fit


def test_images_and_placeholders_must_match(policy: Path, tmp_path: Path) -> None:
    bad = Question("odd", "<image> and <image> 1", "1", images=(noise(1),))
    with pytest.raises(PolicyError, match=r"question 'odd' has 2 <image> in its prompt and 1 images"):
        vision_run(policy, tmp_path, method_of(), questions=[*vision_questions(4), bad])


def test_a_text_policy_refuses_images(tmp_path: Path) -> None:
    text = save_tiny_policy(tmp_path / "text")
    with pytest.raises(PolicyError, match=r"question 'q0' has 1 images, but the policy reads text alone"):
        tiny_run(text, tmp_path / "run", method_of(), questions=vision_questions(4))


def test_each_kind_of_policy_has_its_own_engine_settings(policy: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"sees, .* choose engine=reference_vision"):
        tiny_run(
            policy, tmp_path / "run", method_of(), training=VISION_TRAINING, questions=vision_questions(4)
        )
    text = save_tiny_policy(tmp_path / "text")
    with pytest.raises(ValueError, match=r"reads text alone, .* or engine=reference with a data set"):
        vision_run(text, tmp_path / "run", method_of(), questions=tiny_questions(4))


def test_image_tokens_count_towards_a_prompts_length(policy: Path, tmp_path: Path) -> None:
    training = dataclasses.replace(VISION_TRAINING, max_prompt_tokens=12)
    with pytest.raises(PolicyError, match=r"question 'q1' has 13 tokens, more than max_prompt_tokens=12"):
        tiny_run(
            policy, tmp_path, method_of(), training=training, engine=FROZEN, questions=vision_questions(4)
        )


def test_a_prompt_that_leaves_the_model_no_positions_is_refused(policy: Path, tmp_path: Path) -> None:
    training = dataclasses.replace(VISION_TRAINING, max_response_tokens=250)
    with pytest.raises(PolicyError, match=r"more than the 256 positions"):
        tiny_run(
            policy, tmp_path, method_of(), training=training, engine=FROZEN, questions=vision_questions(4)
        )


def test_an_image_token_in_a_text_is_refused(policy: Path, tmp_path: Path) -> None:
    bad = Question("sly", "a <|image_pad|> b", "1")
    with pytest.raises(PolicyError, match="question 'sly'"):
        vision_run(policy, tmp_path, method_of(), questions=[*vision_questions(4), bad])


def test_a_checkpoint_of_a_frozen_tower_is_not_resumed_with_a_trained_one(
    policy: Path, tmp_path: Path
) -> None:
    vision_run(policy, tmp_path, method_of(), FROZEN, stop_requested=stop_after(1))
    with pytest.raises(RuntimeError, match="weights of another policy"):
        vision_run(policy, tmp_path, method_of(), TRAINED)


def test_settings_come_from_their_own_file() -> None:
    values = {"name": "reference_vision", **dataclasses.asdict(FROZEN)}
    assert engine_settings(values) == FROZEN
    with pytest.raises(ValueError, match="freeze_vision_tower: unknown key"):
        engine_settings({**values, "name": "reference"})
    with pytest.raises(ValueError, match=r"engine\.name='easyr1'"):
        engine_settings({**values, "name": "easyr1"})


def test_the_reference_keeps_its_own_features_when_the_tower_is_trained(policy: Path) -> None:
    def run(engine: VisionEngineSettings) -> tuple[ImageFeatures | None, ImageFeatures | None]:
        loaded = load_policy(policy, "cpu", "float32")
        made = prepare_run(
            method_of(), VISION_TRAINING, engine, loaded, vision_questions(4), letter_reward, 0
        )
        assert made.reference is not None
        return made.scorer.images, made.reference.images

    trained, reference = run(TRAINED)
    assert trained is not None and reference is not None and reference is not trained
    assert reference.constant and not trained.constant
    trained, reference = run(FROZEN)
    assert trained is reference
