"""Starting policies: built once, whole or not at all, the same every time, and loadable like any other."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
import random
import resource
import signal
import subprocess
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

from eval.datasets import load_questions
from eval.datasets.laptop_geometry.families import FAMILIES
from eval.datasets.laptop_geometry.out_of_domain_families import OUT_OF_DOMAIN_FAMILIES
from eval.datasets.laptop_geometry.problem import prompt
from eval.datasets.laptop_geometry.teacher import teacher_response
from experiments.errors import UserError
from experiments.locks import this_process
from experiments.policies.prepare import BUILD_VERSION, prepare_policy
from experiments.policies.settings import LaptopLlama
from experiments.policies.sft import Example, learning_rate, warm_up
from experiments.policies.tokenizer import train_tokenizer

ROOT = Path(__file__).parents[2]
CONF = ROOT / "experiments/conf"
PROBLEMS = [p for problems in (FAMILIES | OUT_OF_DOMAIN_FAMILIES).values() for p in problems()]

# Prepares a policy when both of two processes are ready, and prints what it announces. The one that builds
# goes on once the other waits for it.
PREPARE = """
import json, sys, time
from pathlib import Path
from experiments.policies import laptop_llama
from experiments.policies.prepare import prepare_policy
model, dataset, models, ready, others = json.loads(sys.argv[1])
waiting = Path(models + ".waiting")
def announce(line):
    print(line, flush=True)
    if line.startswith("waiting for"):
        waiting.touch()
    while others and line.startswith("tokenizer:") and not waiting.exists():
        time.sleep(0.01)
Path(ready).touch()
while not all(Path(other).exists() for other in others):
    time.sleep(0.01)
print(prepare_policy(model, dataset, Path(models), announce), flush=True)
"""


def dataset_config() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((CONF / "dataset/laptop_geometry.yaml").read_text())
    return loaded


def model_config(**sft: Any) -> dict[str, Any]:
    """The real policy with a warm-up of five small steps, or as told."""
    loaded: dict[str, Any] = yaml.safe_load((CONF / "model/laptop_llama.yaml").read_text())
    loaded["sft"].update({"steps": 5, "batch_size": 8, "warmup_steps": 2} | sft)
    return loaded


def start_preparing(models: Path, ready: Path, others: list[Path], **sft: Any) -> subprocess.Popen[str]:
    arguments = [model_config(**sft), dataset_config(), str(models), str(ready), [str(o) for o in others]]
    return subprocess.Popen(
        [sys.executable, "-c", PREPARE, json.dumps(arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A policy of five steps, and what its builder announced."""
    announced: list[str] = []
    folder = prepare_policy(
        model_config(), dataset_config(), tmp_path_factory.mktemp("models"), announced.append
    )
    return Path(folder), announced


def test_a_hub_model_is_passed_on_as_it_is(tmp_path: Path) -> None:
    config = {"name": "qwen", "label": "Qwen", "kind": "hub", "path": "Qwen/Qwen2.5-0.5B"}
    assert prepare_policy(config, dataset_config(), tmp_path, pytest.fail) == "Qwen/Qwen2.5-0.5B"
    assert not list(tmp_path.iterdir())


def test_the_built_policy_reloads_by_the_library_alone(built: tuple[Path, list[str]]) -> None:
    model = AutoModelForCausalLM.from_pretrained(built[0])
    tokenizer = AutoTokenizer.from_pretrained(built[0])
    assert isinstance(model, LlamaForCausalLM)
    assert 250_000 < model.num_parameters() < 1_000_000
    assert len(tokenizer) == model.config.vocab_size
    assert (tokenizer.eos_token_id, tokenizer.pad_token_id) == (
        model.config.eos_token_id,
        model.config.pad_token_id,
    )
    prompts = tokenizer(["Q: A room is 3 by 4. Find its area.\nA:", "Q:"], return_tensors="pt", padding=True)
    assert prompts.attention_mask[1].tolist() == sorted(prompts.attention_mask[1].tolist())
    drawn = model.generate(**prompts, max_new_tokens=5)
    assert drawn.shape[1] > prompts.input_ids.shape[1]


def test_sampling_by_default_is_from_the_whole_distribution(built: tuple[Path, list[str]]) -> None:
    defaults = AutoModelForCausalLM.from_pretrained(built[0]).generation_config
    assert (defaults.do_sample, defaults.temperature, defaults.top_k, defaults.top_p) == (True, 1.0, 0, 1.0)


def test_the_tokenizer_gives_every_prompt_and_response_back(built: tuple[Path, list[str]]) -> None:
    tokenizer = AutoTokenizer.from_pretrained(built[0])
    rng = random.Random(0)
    shares = LaptopLlama.from_mapping(model_config()).sft.teacher
    texts = [prompt(problem) for problem in PROBLEMS]
    texts += [teacher_response(problem, shares, rng) for problem in PROBLEMS]
    tokens = tokenizer(texts).input_ids
    assert tokenizer.batch_decode(tokens) == texts
    assert tokenizer.unk_token_id not in {token for row in tokens for token in row}


def test_each_number_is_one_token(built: tuple[Path, list[str]]) -> None:
    tokenizer = AutoTokenizer.from_pretrained(built[0])
    for split in ("train", "selection", "validation", "out_of_domain"):
        for question in load_questions(dataset_config(), split):
            (answer,) = tokenizer(question.answer).input_ids
            boxed = tokenizer(f"\\boxed{{{question.answer}}}").input_ids
            assert len(boxed) == 3 and boxed[1] == answer


def test_an_unknown_character_is_marked_and_not_dropped(built: tuple[Path, list[str]]) -> None:
    tokenizer = AutoTokenizer.from_pretrained(built[0])
    assert tokenizer.unk_token_id in tokenizer("~").input_ids


def test_a_vocabulary_without_room_for_the_numbers_is_refused() -> None:
    with pytest.raises(ValueError, match=r"vocab_size = 20 leaves \d+ numbers in several tokens"):
        train_tokenizer(["one two"], range(300), vocab_size=20, max_token_length=40)


def test_a_policy_is_built_once(built: tuple[Path, list[str]]) -> None:
    folder, announced = built
    assert any("step 5/5" in line for line in announced)
    assert prepare_policy(model_config(), dataset_config(), folder.parent, pytest.fail) == folder
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_what_the_policy_does_not_depend_on_does_not_rebuild_it(built: tuple[Path, list[str]]) -> None:
    folder, _ = built
    model = model_config() | {"label": "another label"}
    dataset = dataset_config() | {"label": "another", "validation_split": "selection"}
    assert prepare_policy(model, dataset, folder.parent, pytest.fail) == folder


def test_the_same_settings_give_the_same_files_and_others_a_folder_of_their_own(
    built: tuple[Path, list[str]], tmp_path: Path
) -> None:
    folder, _ = built
    again = Path(prepare_policy(model_config(), dataset_config(), tmp_path, lambda _: None))
    assert again.name == folder.name
    files = sorted(path.name for path in folder.iterdir())
    assert files == sorted(path.name for path in again.iterdir())
    assert all((folder / name).read_bytes() == (again / name).read_bytes() for name in files)

    other = Path(prepare_policy(model_config(seed=1), dataset_config(), tmp_path, lambda _: None))
    assert other.name != folder.name
    assert (other / "model.safetensors").read_bytes() != (folder / "model.safetensors").read_bytes()
    dataset = dataset_config()
    dataset["splits"]["seed"] = 1
    assert Path(prepare_policy(model_config(), dataset, tmp_path, lambda _: None)).name != folder.name


def test_building_leaves_the_callers_random_state_and_threads_alone(tmp_path: Path) -> None:
    torch.manual_seed(3)
    expected, threads = torch.rand(4), torch.get_num_threads()
    torch.manual_seed(3)
    prepare_policy(model_config(steps=1, warmup_steps=1), dataset_config(), tmp_path, lambda _: None)
    assert torch.equal(torch.rand(4), expected)
    assert torch.get_num_threads() == threads


def test_the_build_version_stands_for_this_training_data(built: tuple[Path, list[str]]) -> None:
    """Cached policies are found by settings and BUILD_VERSION: raise that when code changes these tokens."""
    tokenizer = AutoTokenizer.from_pretrained(built[0])
    shares = LaptopLlama.from_mapping(model_config()).sft.teacher
    rng = random.Random(0)
    digest = hashlib.sha256()
    for problem in PROBLEMS:
        example = tokenizer([prompt(problem), teacher_response(problem, shares, rng)]).input_ids
        digest.update(json.dumps(example).encode())
    assert (BUILD_VERSION, digest.hexdigest()[:16]) == (1, "da7172b9fc8155ce")


def test_of_two_processes_one_builds_and_the_other_waits(tmp_path: Path) -> None:
    marks = [tmp_path / "ready-0", tmp_path / "ready-1"]
    models = tmp_path / "models"
    processes = [start_preparing(models, mark, marks) for mark in marks]
    printed = [process.communicate(timeout=600)[0].splitlines() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert printed[0][-1] == printed[1][-1]
    assert sum(any("warm-up step" in line for line in lines) for lines in printed) == 1
    assert sum(any("waiting for process" in line for line in lines) for lines in printed) == 1
    assert [str(path) for path in models.iterdir()] == [printed[0][-1]]


def test_a_killed_builder_leaves_nothing_that_passes_for_a_policy(tmp_path: Path) -> None:
    sft = {"steps": 100, "batch_size": 8, "warmup_steps": 2}
    process = start_preparing(tmp_path / "models", tmp_path / "ready", [], **sft)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("tokenizer:"):
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not [path for path in (tmp_path / "models").iterdir() if (path / "config.json").exists()]

    folder = Path(prepare_policy(model_config(**sft), dataset_config(), tmp_path / "models", lambda _: None))
    assert AutoModelForCausalLM.from_pretrained(folder).num_parameters() > 0
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def notices_by_its_lock(draft: Path, announce: Callable[[str], None]) -> None:
    announce("tokenizer: late")


def notices_by_its_draft(draft: Path, announce: Callable[[str], None]) -> None:
    """The next one has removed it."""
    draft.rmdir()
    (draft / "config.json").write_text("{}")


@pytest.mark.parametrize("notices", [notices_by_its_lock, notices_by_its_draft])
def test_a_builder_that_lost_its_lock_waits_for_the_next_and_leaves_its_draft_alone(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    notices: Callable[[Path, Callable[[str], None]], None],
) -> None:
    config = {"name": "slow", "label": "Slow", "kind": "built", "builder": "slow"}
    next_one = dataclasses.replace(this_process(), host="another-host")
    drafts: list[Path] = []

    def build(model: Any, dataset: Any, draft: Path, announce: Callable[[str], None]) -> None:
        """It is held up, and the next one takes its lock over, and a draft of its own."""
        name = draft.name.split(".")[0]
        (tmp_path / f"{name}.lock").write_text(json.dumps(dataclasses.asdict(next_one)))
        drafts.append(tmp_path / f"{name}.{next_one.token}.building")
        drafts[0].mkdir()
        notices(draft, announce)

    def finish(line: str) -> None:
        assert line.startswith(f"waiting for {next_one}")
        folder = tmp_path / drafts[0].name.split(".")[0]
        drafts[0].rename(folder)
        folder.with_name(f"{folder.name}.lock").unlink()

    monkeypatch.setitem(sys.modules, "experiments.policies.slow", types.SimpleNamespace(build=build))
    folder = Path(prepare_policy(config, dataset_config(), tmp_path, finish))
    assert folder.is_dir()
    assert not list(tmp_path.glob(f"{folder.name}.*building"))


def test_a_full_disk_is_a_clear_error_and_leaves_nothing(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(UserError, match="There is no space left to write laptop_llama-"):
            prepare_policy(model_config(), dataset_config(), tmp_path, lambda _: None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file stands where the folder should be")
    with pytest.raises(UserError, match="can't be written"):
        prepare_policy(model_config(), dataset_config(), tmp_path / "models", lambda _: None)


def test_a_policy_is_not_warmed_up_on_a_data_set_it_does_not_know(tmp_path: Path) -> None:
    dataset = dataset_config() | {"name": "math", "source": "math"}
    with pytest.raises(ValueError, match="knows nothing of data set 'math'"):
        prepare_policy(model_config(), dataset, tmp_path, lambda _: None)
    assert not list(tmp_path.iterdir())


def test_settings_with_a_missing_or_unknown_key_are_refused() -> None:
    for change in ({"seed": None}, {"extra": 1}):
        config = copy.deepcopy(model_config())
        config["sft"].update(change)
        config["sft"] = {key: value for key, value in config["sft"].items() if value is not None}
        with pytest.raises(TypeError, match=r"seed|extra"):
            LaptopLlama.from_mapping(config)


@settings(max_examples=30)
@given(steps=st.integers(2, 500), warmup=st.integers(1, 500))
def test_the_learning_rate_rises_to_its_peak_and_falls_to_its_end(steps: int, warmup: int) -> None:
    sft = LaptopLlama.from_mapping(model_config(steps=steps, warmup_steps=warmup)).sft
    rates = [learning_rate(sft, step) for step in range(1, steps + 1)]
    assert all(0 < rate <= sft.lr * (1 + 1e-12) for rate in rates)
    assert rates[: min(warmup, steps)] == sorted(rates[: min(warmup, steps)])
    if warmup < steps:
        assert rates[warmup - 1] == pytest.approx(sft.lr)
        assert rates[warmup - 1 :] == sorted(rates[warmup - 1 :], reverse=True)
        assert rates[-1] == pytest.approx(sft.final_lr)


def tiny_model() -> LlamaForCausalLM:
    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=12,
            hidden_size=16,
            intermediate_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=2,
        )
    )


def test_warming_up_teaches_the_response_to_a_prompt() -> None:
    sft = LaptopLlama.from_mapping(model_config(steps=60, batch_size=4, warmup_steps=5, lr=0.01)).sft
    model = tiny_model()
    warm_up(
        model,
        lambda count: [Example([2 + i % 4], [6 + i % 4, 1]) for i in range(count)],
        sft,
        pad_token_id=0,
        announce=lambda _: None,
    )
    first = model(input_ids=torch.arange(2, 6)[:, None]).logits[:, -1].argmax(-1)
    assert first.tolist() == [6, 7, 8, 9]


def test_the_loss_is_over_responses_alone_and_every_token_counts_alike() -> None:
    """A batch of short responses is not scaled up: both kinds are divided by the mean, 4 targets a batch."""
    sft = LaptopLlama.from_mapping(
        model_config(steps=1, batch_size=2, warmup_steps=1, lr=0.0, final_lr=0.0)
    ).sft
    model = tiny_model()
    examples = [Example([2, 3], [4]), Example([5], [6, 7, 8])]
    possible = []
    for example in examples:
        tokens = torch.tensor([example.prompt + example.response])
        with torch.no_grad():
            logp = model(input_ids=tokens).logits.log_softmax(-1)[0]
        targets = range(len(example.prompt), len(example))
        possible.append(-2 * sum(float(logp[at - 1, tokens[0, at]]) for at in targets) / 4)
    lines: list[str] = []
    warm_up(model, lambda count: examples * (count // 2), sft, pad_token_id=0, announce=lines.append)
    assert lines[0] in [f"warm-up step 1/1, loss {loss:.3f}" for loss in possible]


def test_a_loss_that_is_not_finite_stops_the_warm_up() -> None:
    sft = LaptopLlama.from_mapping(model_config(lr=1e30, steps=20, warmup_steps=1)).sft
    with pytest.raises(RuntimeError, match=r"the loss is (nan|inf) at step \d+; lower sft.lr = 1e\+30"):
        warm_up(
            tiny_model(),
            lambda count: [Example([2], [3, 1])] * count,
            sft,
            pad_token_id=0,
            announce=lambda _: None,
        )


def test_the_saved_tokenizer_is_plain_json(built: tuple[Path, list[str]]) -> None:
    loaded = Tokenizer.from_file(str(built[0] / "tokenizer.json"))
    assert loaded.decode(loaded.encode("The answer is \\boxed{73}.").ids) == "The answer is \\boxed{73}."
