"""The evaluate stage's core on a tiny random policy: records, resuming, models, and what goes wrong."""

from __future__ import annotations

import copy
import json
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from laptop_benchmark import composed, small_benchmark
from small_evaluation import MODELS, rows, run, without_seconds
from tiny_policy import build_tiny_policy

from eval.checkpoint import CheckpointError
from eval.evaluate import EvaluationStopped, evaluate_all
from eval.models import load_model
from eval.results import RecordError, read_results, write_results

ROOT = Path(__file__).parents[2]


# The record


def test_record_holds_every_sample_and_metrics_that_follow_from_them(evaluated: Path) -> None:
    results, samples = read_results(evaluated / "results.json"), rows(evaluated)
    assert sorted(path.name for path in evaluated.iterdir()) == ["results.json", "samples.parquet"]
    assert (results["benchmark"], results["n_questions"]) == ("laptop_geometry", 16)
    assert results["checkpoint"] == "checkpoints/final"
    assert set(results["digests"]) == {"data", "prompt", "extractor", "checkpoint"}
    per_decoding = Counter(row["decoding"] for row in samples)
    assert per_decoding == {"t1": 64, "t0_6": 64, "greedy": 16}
    for name, decoding in results["decodings"].items():
        mine = [row for row in samples if row["decoding"] == name]
        n = decoding["samples"]
        assert [row["sample"] for row in mine] == list(range(n)) * 16
        assert all(len(list(group)) == n for _, group in groupby(mine, key=lambda row: row["question_id"]))
        assert decoding["metrics"]["accuracy"] == np.mean([row["correct"] for row in mine])
        assert decoding["truncation_rate"] == np.mean([row["truncated"] for row in mine])
        assert decoding["extraction_failure_rate"] == np.mean([row["extracted"] is None for row in mine])
        assert decoding["mean_tokens"] == pytest.approx(np.mean([row["tokens"] for row in mine]))
        assert decoding["intervals"].keys() == decoding["metrics"].keys()
    assert list(results["decodings"]["greedy"]["metrics"]) == ["accuracy"]
    sampled = results["decodings"]["t1"]["metrics"]
    assert list(sampled) == ["accuracy", "avg_at_4", "pass_at_1", "pass_at_2", "pass_at_4", "maj_at_4"]
    assert sampled["pass_at_1"] == pytest.approx(sampled["avg_at_4"])


@pytest.mark.parametrize("lm", MODELS)
def test_truncated_means_that_the_limit_came_before_the_end_of_sequence(
    policy: Path, tmp_path: Path, lm: str
) -> None:
    run(policy, tmp_path, small_benchmark(lm=lm))
    sampled = [row for row in rows(tmp_path) if row["decoding"] == "t1"]
    cut = [row for row in sampled if row["truncated"]]
    whole = [row for row in sampled if not row["truncated"]]
    assert cut and whole  # the policy ends some of its responses in time
    assert {row["tokens"] for row in cut} == {24} and all(row["tokens"] <= 24 for row in whole)
    # Every token of this vocabulary but the special ones is a character or \boxed{.
    length = re.compile(r"\\boxed\{|[\s\S]")
    assert all(row["tokens"] > len(length.findall(row["response"])) for row in whole)


def test_metric_names_suit_mlflow(evaluated: Path) -> None:
    results = read_results(evaluated / "results.json")
    names = [name for decoding in results["decodings"].values() for name in decoding["metrics"]]
    assert all(re.fullmatch(r"[a-z0-9_]+", name) for name in (*names, *results["decodings"]))


def test_truncation_above_the_alarm_is_announced(policy: Path, tmp_path: Path) -> None:
    greedy = {"greedy": {"temperature": 0.0, "samples": 1}}
    _, said = run(policy, tmp_path, small_benchmark(decodings=greedy, max_gen_toks=2, truncation_alarm=0.05))
    assert any("warning" in line and "max_gen_toks = 2" in line for line in said)


# Once is enough


def test_a_finished_evaluation_is_not_repeated(policy: Path, evaluated: Path) -> None:
    before = (evaluated / "results.json").read_bytes()
    results, said = run(policy, evaluated, stop=lambda: True)
    assert (results, said) == (json.loads(before), [])


@pytest.mark.parametrize(
    "change",
    [
        lambda benchmark: benchmark.update(label="Another label"),
        lambda benchmark: benchmark["dataset"].update(label="Another label"),
        lambda benchmark: benchmark["dataset"]["splits"]["sizes"].update(train=8),
    ],
    ids=["label", "label of the data set", "size of another split"],
)
def test_what_cannot_change_a_result_does_not_repeat_it(
    policy: Path, evaluated: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    benchmark = small_benchmark()
    change(benchmark)
    run(policy, evaluated, benchmark, stop=lambda: True)


@pytest.mark.parametrize("changed", ["settings", "seed", "questions", "checkpoint"])
def test_what_can_change_a_result_repeats_it(
    policy: Path, evaluated: Path, tmp_path: Path, changed: str
) -> None:
    output, checkpoint, benchmark, seed = tmp_path / "out", policy, small_benchmark(), 0
    shutil.copytree(evaluated, output)
    if changed == "settings":
        benchmark["max_gen_toks"] = 25
    elif changed == "seed":
        seed = 1
    elif changed == "questions":
        benchmark["dataset"]["splits"]["seed"] = 7
    else:
        checkpoint = build_tiny_policy(tmp_path / "other", seed=1)
    with pytest.raises(EvaluationStopped):
        run(checkpoint, output, benchmark, seed=seed, stop=lambda: True)


def test_decodings_and_seeds_draw_differently_and_greedy_draws_nothing(
    policy: Path, evaluated: Path, tmp_path: Path
) -> None:
    run(policy, tmp_path, seed=1)
    one, other = ([row["response"] for row in rows(folder)] for folder in (evaluated, tmp_path))
    assert one[:64] != other[:64] and one[64:128] != other[64:128]
    assert one[128:] == other[128:]
    assert len(set(one[:64])) > 60


# Stopping and dying


@pytest.mark.parametrize("batches", [0, 1, 4, 8])
def test_a_stopped_evaluation_goes_on_and_ends_the_same(
    policy: Path, evaluated: Path, tmp_path: Path, batches: int
) -> None:
    asked = iter(range(1000))
    with pytest.raises(EvaluationStopped, match="start it again"):
        run(policy, tmp_path, stop=lambda: next(asked) >= batches)
    assert not (tmp_path / "results.json").exists()
    results, _ = run(policy, tmp_path)
    undisturbed = read_results(evaluated / "results.json")
    assert {**without_seconds(results), "checkpoint": ""} == {
        **without_seconds(undisturbed),
        "checkpoint": "",
    }
    assert rows(tmp_path) == rows(evaluated)


def test_kill_9_between_decodings_loses_only_the_unfinished_one(
    policy: Path, evaluated: Path, tmp_path: Path
) -> None:
    output = tmp_path / "run" / "eval" / "laptop_geometry"
    program = f"""
import os, signal
from laptop_benchmark import small_benchmark
from pathlib import Path
from eval.evaluate import evaluate
def announce(line):
    if "(t0_6)" in line:
        os.kill(os.getpid(), signal.SIGKILL)
evaluate(checkpoint={str(policy)!r}, benchmark=small_benchmark(), output=Path({str(output)!r}), seed=0,
         stop_requested=lambda: False, announce=announce)
"""
    path = f"{ROOT}:{Path(__file__).parent}"
    killed = subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": path, "OMP_NUM_THREADS": "1"})
    assert killed.returncode == -signal.SIGKILL
    assert [part.name for part in (output / "decodings").iterdir()] == ["t1.parquet"]
    _, said = run(policy, output)
    assert [line.rpartition(" ")[2] for line in said] == ["(t0_6)", "(greedy)"]
    assert rows(output) == rows(evaluated)


def test_parts_of_another_evaluation_are_not_used(policy: Path, tmp_path: Path) -> None:
    asked = iter(range(1000))
    with pytest.raises(EvaluationStopped):
        run(policy, tmp_path, stop=lambda: next(asked) >= 5)
    assert (tmp_path / "decodings" / "t1.parquet").exists()
    _, said = run(policy, tmp_path, seed=1)
    assert len(said) == 3


@pytest.mark.parametrize("content", [b"", b'{"schema": 1, "bench', b"[]", b'{"schema": 1}', b"\xff\xfe"])
def test_corrupt_results_are_named_and_made_again(
    policy: Path, evaluated: Path, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "results.json").write_bytes(content)
    results, said = run(policy, tmp_path)
    assert str(tmp_path / "results.json") in said[0] and "evaluating again" in said[0]
    assert results["decodings"] == read_results(evaluated / "results.json")["decodings"]


@pytest.mark.parametrize(
    "damage", [lambda whole: b"", lambda whole: whole[: len(whole) // 2], lambda whole: b"x" * 99]
)
def test_corrupt_parts_are_named_and_made_again(
    policy: Path, evaluated: Path, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    asked = iter(range(1000))
    with pytest.raises(EvaluationStopped):
        run(policy, tmp_path, stop=lambda: next(asked) >= 5)
    part = tmp_path / "decodings" / "t1.parquet"
    part.write_bytes(damage(part.read_bytes()))
    _, said = run(policy, tmp_path)
    assert str(part) in said[0] and "evaluating again" in said[0]
    assert rows(tmp_path) == rows(evaluated)


def test_a_full_disk_leaves_no_half_written_record(evaluated: Path, tmp_path: Path) -> None:
    results = read_results(evaluated / "results.json")
    path = tmp_path / "results.json"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (512, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            write_results(path, results)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []


def test_a_nan_is_not_written(evaluated: Path, tmp_path: Path) -> None:
    results = read_results(evaluated / "results.json")
    with pytest.raises(ValueError, match="Out of range float"):
        write_results(tmp_path / "results.json", {**results, "seconds": float("nan")})
    assert list(tmp_path.iterdir()) == []


def test_writers_of_one_record_with_one_process_id_as_on_two_machines_do_not_mix(
    evaluated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results, path, rename = read_results(evaluated / "results.json"), tmp_path / "results.json", Path.replace

    def rename_late(self: Path, target: Path) -> Path:
        monkeypatch.setattr(Path, "replace", rename)
        write_results(path, {**results, "seed": 1})
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", rename_late)
    write_results(path, results)
    assert read_results(path) == results
    assert list(tmp_path.iterdir()) == [path]


def test_a_record_of_another_schema_is_refused(evaluated: Path, tmp_path: Path) -> None:
    results = read_results(evaluated / "results.json")
    write_results(tmp_path / "results.json", {**results, "schema": 2})
    with pytest.raises(RecordError, match="schema 2, this version reads 1"):
        read_results(tmp_path / "results.json")


# The checkpoint


def test_a_missing_checkpoint_is_named_before_anything_heavy_is_imported(tmp_path: Path) -> None:
    program = f"""
import json, sys
from pathlib import Path
from eval.checkpoint import CheckpointError
from eval.evaluate import evaluate
benchmark = json.loads(sys.stdin.read())
try:
    evaluate(checkpoint="/nowhere/final", benchmark=benchmark, output=Path({str(tmp_path)!r}), seed=0,
             stop_requested=lambda: False, announce=print)
except CheckpointError as error:
    print(error)
print(sorted({{"torch", "transformers", "lm_eval", "datasets", "pandas"}} & sys.modules.keys()))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(small_benchmark()),
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    error, heavy = done.stdout.splitlines()
    assert "/nowhere/final" in error and "train the run first" in error
    assert heavy == "[]"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors", "tokenizer*"])
def test_a_half_copied_checkpoint_is_named(policy: Path, tmp_path: Path, missing: str) -> None:
    half = tmp_path / "half"
    shutil.copytree(policy, half, ignore=shutil.ignore_patterns(missing))
    with pytest.raises(CheckpointError, match=r"half has no .*half copied"):
        run(half, tmp_path / "out")


def test_several_benchmarks_share_one_model_and_give_what_each_gives_alone(
    policy: Path, evaluated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads: list[Path] = []

    def counted(checkpoint: Path, *arguments: Any) -> Any:
        loads.append(checkpoint)
        return load_model(checkpoint, *arguments)

    monkeypatch.setattr("eval.evaluate.load_model", counted)
    ood = copy.deepcopy(composed()["laptop_geometry_ood"])
    ood["dataset"]["splits"]["sizes"]["out_of_domain"] = 8
    benchmarks = {"laptop_geometry": small_benchmark(), "laptop_geometry_ood": ood | {"batch_size": 24}}
    results = evaluate_all(
        checkpoint=policy,
        benchmarks=benchmarks,
        outputs={name: tmp_path / name for name in benchmarks},
        seed=0,
        stop_requested=lambda: False,
        announce=lambda line: None,
    )
    assert loads == [policy]
    assert results["laptop_geometry"]["decodings"] == read_results(evaluated / "results.json")["decodings"]
    assert results["laptop_geometry_ood"]["n_questions"] == 8
    assert rows(tmp_path / "laptop_geometry") == rows(evaluated)


# Settings


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pass_k": [1, 16]}, r"pass_k = \[1, 16\].*4 samples of decodings.t1"),
        ({"decodings": {}}, "decodings is empty"),
        (
            {"decodings": {"g": {"temperature": 0.0, "samples": 8}}},
            "and one when decoding is greedy",
        ),
        ({"decodings": {"t": {"temperature": -1.0, "samples": 8}}}, "temperature = -1.0"),
        ({"decodings": {"pass@1": {"temperature": 1.0, "samples": 4}}}, "'pass@1' names files"),
        ({"max_gen_toks": 0}, "max_gen_toks = 0"),
        ({"lm": "gpt"}, "lm"),
        ({"task": "laptop_geometri"}, "no lm-eval task 'laptop_geometri'"),
        ({"interval": {"level": 1.5, "resamples": 10}}, "interval.level = 1.5"),
    ],
)
def test_bad_settings_are_named(policy: Path, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(policy, tmp_path, small_benchmark(**changes))
    assert list(tmp_path.iterdir()) == []
