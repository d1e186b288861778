"""The lm-eval tasks of the laptop's figures: the right questions and images, in both models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra import compose, initialize_config_dir
from lm_eval.tasks import TaskManager
from omegaconf import OmegaConf

from eval.benchmark_settings import BenchmarkSettings
from eval.datasets import load_questions
from eval.decoding import generation_kwargs
from eval.digests import TASKS, extractor_digest
from eval.evaluate import evaluate
from eval.results import read_samples
from experiments.policies.prepare import prepare_policy

CONF = Path(__file__).parents[2] / "experiments" / "conf"
BENCHMARKS = ("laptop_figures", "laptop_figures_ood", "laptop_figures_shuffled")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("figures")


@pytest.fixture(scope="module")
def composed(root: Path) -> dict[str, dict[str, Any]]:
    with initialize_config_dir(version_base="1.3", config_dir=str(CONF)):
        config = compose(overrides=[f"+benchmark=[{','.join(BENCHMARKS)}]", f"++paths.root={root}"])
    benchmarks: dict[str, dict[str, Any]] = OmegaConf.to_container(config.benchmarks, resolve=True)  # type: ignore[assignment]
    return benchmarks


@pytest.fixture(scope="module")
def policy(root: Path, composed: dict[str, dict[str, Any]]) -> Path:
    """A policy of a few small steps, which answers at random."""
    model = yaml.safe_load((CONF / "model/laptop_qwen2_5_vl.yaml").read_text())
    model["sft"] |= {"steps": 30, "batch_size": 8, "warmup_steps": 2, "caption_steps": 2}
    model["tokenizer"] |= {"corpus_size": 1500}
    return Path(
        prepare_policy(model, composed["laptop_figures"]["dataset"], root / "models", lambda line: None)
    )


def load_task(name: str, root: Path) -> Any:
    """An lm-eval task as lm-eval's command line would make it, but for the folder of its data."""
    manager = TaskManager(include_path=str(TASKS), include_defaults=False)
    written = yaml.load((TASKS / "laptop_figures/laptop_figures.yaml").read_text(), Loader=_Loader)
    arguments = written["dataset_kwargs"]
    arguments["dataset"]["root"] = str(root / "data/laptop_figures")
    changed = {"task": name, "dataset_kwargs": arguments}
    return manager.load([{"group": "all", "task": [changed]}])["tasks"][name]


class _Loader(yaml.SafeLoader):
    """Reads a task file without the functions that it names."""


_Loader.add_constructor("!function", lambda loader, node: str(node.value))


def small(benchmark: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """16 questions, greedily."""
    sizes = {"train": 8, "selection": 8, "validation": 16, "out_of_domain": 16}
    splits = benchmark["dataset"]["splits"] | {"sizes": sizes}
    decodings = {"greedy": {"temperature": 0.0, "samples": 1}}
    fields = {"dataset": benchmark["dataset"] | {"splits": splits}, "decodings": decodings}
    return benchmark | fields | {"max_gen_toks": 12, "truncation_alarm": 1.0} | changes


def responses(benchmark: dict[str, Any], policy: Path, output: Path) -> list[str]:
    evaluate(
        checkpoint=policy,
        benchmark=benchmark,
        output=output,
        seed=0,
        stop_requested=lambda: False,
        announce=lambda line: None,
    )
    answered: list[str] = read_samples(output / "samples.parquet")[0]["response"].to_pylist()
    return answered


@pytest.mark.parametrize("name", BENCHMARKS)
def test_lm_eval_alone_asks_our_questions_with_their_images(
    name: str, root: Path, composed: dict[str, dict[str, Any]]
) -> None:
    benchmark, task = composed[name], load_task(name, root)
    questions = load_questions(benchmark["dataset"], benchmark["split"])
    asked = list(task.eval_docs)
    assert [document["prompt"] for document in asked] == [question.prompt for question in questions]
    assert [document["answer"] for document in asked] == [question.answer for question in questions]
    for document, question in zip(asked[:8], questions[:8], strict=True):
        (image,) = task.doc_to_image(document)
        assert image.png() == question.images[0].png()


def test_lm_eval_alone_decodes_like_our_decoding_at_temperature_1(
    root: Path, composed: dict[str, dict[str, Any]]
) -> None:
    settings = BenchmarkSettings.from_mapping(composed["laptop_figures"])
    config = load_task("laptop_figures", root).config
    arguments = generation_kwargs(settings.decodings["t1"], settings.max_gen_toks, settings.until, seed=0)
    del arguments["seed"]
    assert config.generation_kwargs == arguments
    assert config.repeats == settings.decodings["t1"].samples


def test_the_task_file_names_the_data_set_of_the_config(composed: dict[str, dict[str, Any]]) -> None:
    written = yaml.load((TASKS / "laptop_figures/laptop_figures.yaml").read_text(), Loader=_Loader)
    dataset = written["dataset_kwargs"]["dataset"]
    assert dataset | {"root": ""} == composed["laptop_figures"]["dataset"] | {"root": ""}


def test_figures_are_graded_as_words_are() -> None:
    own, words = extractor_digest("laptop_figures"), extractor_digest("laptop_geometry")
    assert own == extractor_digest("laptop_figures_ood") == extractor_digest("laptop_figures_shuffled")
    assert own != words  # it has a file of its own


def test_our_sampler_and_transformers_give_the_same_greedy_responses(
    policy: Path, composed: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    benchmark = small(composed["laptop_figures"])
    ours = responses(benchmark, policy, tmp_path / "ours")
    transformers = responses(
        benchmark | {"lm": "hf-multimodal", "batch_size": 8}, policy, tmp_path / "transformers"
    )
    assert len(ours) == 16
    assert ours == transformers


def test_samples_depend_on_the_image(
    policy: Path, composed: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    """With the same random numbers, and other images alone."""
    hot = {"decodings": {"hot": {"temperature": 1.5, "samples": 4}}, "pass_k": [1]}
    own, again, others = (
        responses(small(composed["laptop_figures"], split=split, **hot), policy, tmp_path / str(number))
        for number, split in enumerate(("validation", "validation", "shuffled"))
    )
    assert own == again
    assert own != others
