"""The laptop policy that sees: transformers' own model, which reads figures as its processor gives them."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from transformers import AutoModelForImageTextToText, AutoTokenizer, Qwen2_5_VLForConditionalGeneration

from eval.datasets import load_questions
from eval.datasets.laptop_figures.figure import HEIGHT, WIDTH
from eval.datasets.laptop_figures.problem import FIGURES, PicturedProblem, caption
from eval.datasets.laptop_geometry.teacher import teacher_response
from experiments.atomic_files import write_json
from experiments.compose import compose_cell
from experiments.evaluate_stage import evaluate
from experiments.policies.laptop_vision import GRID, figure_patches
from experiments.policies.prepare import prepare_policy
from experiments.policies.settings import LaptopVision
from experiments.policies.sft import Example
from experiments.policies.vision_sft import FigureExample, warm_up
from experiments.run_directory import RunDirectory
from experiments.stage_function import StageContext
from experiments.starting_policy import record_start
from fastrl.engines.reference.policy import load_policy
from fastrl.engines.reference.qwen_processor import load_qwen_processor

CONF = Path(__file__).parents[2] / "experiments/conf"


def dataset_config(root: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((CONF / "dataset/laptop_figures.yaml").read_text())
    return loaded | {"root": str(root)}


def model_config(**sft: Any) -> dict[str, Any]:
    """The real policy with a warm-up of four small steps, or as told."""
    loaded: dict[str, Any] = yaml.safe_load((CONF / "model/laptop_qwen2_5_vl.yaml").read_text())
    small = {"steps": 4, "batch_size": 4, "warmup_steps": 2, "caption_steps": 2}
    loaded["sft"] |= small | sft
    loaded["tokenizer"] |= {"corpus_size": 1500}
    return loaded


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("policy")
    return Path(prepare_policy(model_config(), dataset_config(root), root, lambda line: None))


@pytest.fixture(scope="module")
def model(built: Path) -> Any:
    return AutoModelForImageTextToText.from_pretrained(built).eval()


def sample_of_problems(count: int) -> list[PicturedProblem]:
    rng = random.Random(0)
    families = list({**FIGURES.in_domain, **FIGURES.out_of_domain}.values())
    every = [problem for problems in families for problem in problems()]
    return [problem for problem in rng.sample(every, count) if isinstance(problem, PicturedProblem)]


def test_it_is_a_qwen2_5_vl_of_about_half_a_million_parameters(model: Any) -> None:
    assert isinstance(model, Qwen2_5_VLForConditionalGeneration)
    assert 400_000 < model.num_parameters() < 700_000


def test_the_engine_loads_it_as_a_policy_that_sees(built: Path) -> None:
    policy = load_policy(built, "cpu", "float32")
    assert policy.vision is not None
    assert policy.eos_ids == (policy.tokenizer.convert_tokens_to_ids("<|im_end|>"),)


def test_sampling_by_default_is_from_the_whole_distribution(model: Any) -> None:
    defaults = model.generation_config
    assert (defaults.do_sample, defaults.temperature, defaults.top_k, defaults.top_p) == (True, 1.0, 0, 1.0)


def test_both_generations_of_the_library_find_their_rotary_settings(built: Path) -> None:
    text = json.loads((built / "config.json").read_text())["text_config"]
    newer, older = text["rope_parameters"], text["rope_scaling"]
    assert newer["mrope_section"] == older["mrope_section"]
    assert newer["rope_theta"] == text["rope_theta"]
    half_a_head = text["hidden_size"] // text["num_attention_heads"] // 2
    assert sum(older["mrope_section"]) == half_a_head


def test_the_tokenizer_gives_every_text_back_and_each_number_is_one_token(built: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(built)
    rng = random.Random(0)
    shares = LaptopVision.from_mapping(model_config()).sft.teacher
    problems = sample_of_problems(300)
    texts = [text for p in problems for text in (p.text, caption(p), teacher_response(p, shares, rng))]
    tokens = tokenizer(texts).input_ids
    assert tokenizer.batch_decode(tokens) == texts
    assert tokenizer.unk_token_id not in {token for row in tokens for token in row}
    assert all(len(tokenizer(str(problem.answer)).input_ids) == 1 for problem in problems)


def test_warm_up_and_processor_see_the_same_patches(built: Path) -> None:
    processor = load_qwen_processor(built).image_processor
    problems = sample_of_problems(12)
    seen = processor([problem.picture().convert("RGB") for problem in problems], return_tensors="pt")
    assert seen["image_grid_thw"].tolist() == [[1, *GRID]] * len(problems)
    torch.testing.assert_close(figure_patches(problems).flatten(0, 1), seen["pixel_values"])


def test_larger_images_are_shrunk_by_the_names_of_either_version_of_transformers(built: Path) -> None:
    processor = load_qwen_processor(built).image_processor
    large = sample_of_problems(1)[0].picture().convert("RGB").resize((2 * WIDTH, 2 * HEIGHT))
    assert processor([large], return_tensors="pt")["image_grid_thw"].tolist() == [[1, *GRID]]
    saved = json.loads((built / "preprocessor_config.json").read_text())
    assert (saved["min_pixels"], saved["max_pixels"]) == (
        saved["size"]["shortest_edge"],
        saved["size"]["longest_edge"],
    )


def test_the_chat_template_puts_a_question_between_its_image_and_the_answer(
    built: Path, tmp_path: Path
) -> None:
    policy = load_policy(built, "cpu", "float32")
    assert policy.vision is not None
    question = load_questions(dataset_config(tmp_path), "validation")[0]
    tokens = policy.vision.reader.read(question)
    asked = question.prompt.removeprefix("<image>")
    image = "<|vision_start|>" + "<|image_pad|>" * 6 + "<|vision_end|>"
    assert policy.tokenizer.decode(tokens) == f"{image}{asked}<|im_start|>"


def test_the_warm_up_learns_to_read(model: Any) -> None:
    """With captions alone, of two figures: soon it says of each what stands in it."""
    problems = sample_of_problems(2)
    patches = figure_patches(problems)
    image = [model.config.vision_start_token_id, *[model.config.image_token_id] * 6]
    examples = [
        FigureExample(patches[row], Example(image, [30 + row]), Example(image, [20 + row]))
        for row in range(2)
    ]
    losses: list[str] = []
    settings = LaptopVision.from_mapping(
        model_config(steps=60, caption_steps=60, batch_size=2, lr=3e-3, final_lr=3e-3)
    ).sft
    warm_up(model, lambda count: examples * (count // 2), GRID, settings, losses.append)
    assert float(losses[-1].rpartition(" ")[2]) < 0.05


def test_the_same_settings_give_the_same_weights(built: Path, tmp_path: Path) -> None:
    again = Path(prepare_policy(model_config(), dataset_config(tmp_path), tmp_path, lambda line: None))
    assert again.name == built.name
    for name in ("model.safetensors", "tokenizer.json", "config.json", "preprocessor_config.json"):
        assert (again / name).read_bytes() == (built / name).read_bytes(), name


def test_another_data_set_is_refused(tmp_path: Path) -> None:
    words = yaml.safe_load((CONF / "dataset/laptop_geometry.yaml").read_text())
    with pytest.raises(ValueError, match="warmed up on laptop_figures and knows nothing of data set"):
        prepare_policy(model_config(), words, tmp_path, lambda line: None)
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


def test_an_environment_that_can_not_build_it_is_told_which_one_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("transformers.__version__", "4.57.6")
    dataset = compose_cell(["model=laptop_qwen2_5_vl", "dataset=laptop_figures"])["dataset"]
    with pytest.raises(ValueError, match=r"has 4\.57\.6: train a cell of it with engine=reference_vision"):
        prepare_policy(model_config(), dataset, tmp_path, lambda line: None)
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]


def evaluated_run(built: Path, root: Path) -> tuple[RunDirectory, dict[str, Any]]:
    """A run that started from the built policy and has learnt nothing, to be evaluated on eight questions."""
    few = "{train: 8, selection: 8, validation: 8, out_of_domain: 8}"
    config = compose_cell(
        [
            *("model=laptop_qwen2_5_vl", "dataset=laptop_figures", "training=laptop_figures"),
            *("engine=reference_vision", "method=grpo", "benchmark=[laptop_figures]"),
            f"benchmarks.laptop_figures.dataset.splits.sizes={few}",
            f"benchmarks.laptop_figures.dataset.root={root / 'data'}",
            "benchmarks.laptop_figures.batch_size=4",
            "benchmarks.laptop_figures.decodings={t1: {temperature: 1.0, samples: 2}}",
            "benchmarks.laptop_figures.pass_k=[1,2]",
        ]
    )
    run = RunDirectory.create(root, "run", config)
    write_json(run.provenance_path, {"policy": built.name})
    for place in (root / "models" / built.name, run.final_checkpoint):
        place.parent.mkdir()
        place.symlink_to(built)
    return run, config


def test_an_evaluation_sweeps_what_a_killed_one_was_writing(built: Path, tmp_path: Path) -> None:
    run, config = evaluated_run(built, tmp_path)
    start = run.start_path("laptop_figures")
    assert start is not None
    folders = (run.evaluation_path("laptop_figures"), start)
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / ".results.json.0123abcd.draft").touch()
    context = StageContext("evaluate-laptop_figures", 2, lambda: False, lambda line: None)
    evaluate(run, config, context)
    written, of_start = (sorted(path.name for path in folder.iterdir()) for folder in folders)
    assert written == ["results.json", "samples.parquet"]
    assert of_start == ["questions.parquet", "results.json", "samples.parquet"]


def test_the_record_of_a_start_keeps_its_lock_from_going_stale_however_long_it_takes(
    built: Path, tmp_path: Path
) -> None:
    run, config = evaluated_run(built, tmp_path)
    lock = tmp_path / "models" / f"{built.name}.start" / "laptop_figures.lock"
    touched = []

    def much_later() -> bool:
        """The lock as it is when a batch begins, and long after it was touched."""
        touched.append(lock.stat().st_mtime)
        os.utime(lock, (1, 1))
        return False

    context = StageContext("evaluate-laptop_figures", 1, much_later, lambda line: None)
    record_start(run, config, "laptop_figures", context)
    assert len(touched) > 2 and 1.0 not in touched
    assert not lock.exists()
    assert (lock.with_suffix("") / "results.json").is_file()
