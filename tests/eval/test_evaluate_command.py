"""`fastrl evaluate` as a user meets it: recorded outputs, a checkpoint, and wrong usage."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from official_folders import records, write_folder
from tiny_policy import build_tiny_policy

from eval.results import read_results
from experiments.cli import main
from experiments.locks import Lock, acquire, this_process

ONE_SAMPLE = ["~decodings.t1", "truncation_alarm=1.0"]


def rows(name: str, n: int, split: str = "test") -> list[str]:
    """Overrides that take `n` records of the split for the whole of it."""
    return [f"data.splits.{split}.rows={n}", f"data.splits.{split}.sha256=null"]


@pytest.fixture
def aime(tmp_path: Path) -> list[str]:
    """Words that name a folder of three AIME problems, and outputs of which two are right."""
    n = write_folder("aime24", tmp_path / "data" / "aime24")
    said = [
        {"id": record["id"], "response": f"\\boxed{{{record['answer']}}}"} for record in records("aime24")
    ]
    said[1]["response"] = "no idea"
    (tmp_path / "said.jsonl").write_text("".join(json.dumps(record) + "\n" for record in said), "utf-8")
    return ["evaluate", "benchmark=aime24", f"data.root={tmp_path / 'data'}", *rows("aime24", n), *ONE_SAMPLE]


def replayed(tmp_path: Path) -> list[str]:
    return ["lm=replay", f"lm_options.outputs={tmp_path / 'said.jsonl'}"]


def test_recorded_outputs_are_scored_and_recorded(
    aime: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*aime, *replayed(tmp_path), f"output={tmp_path / 'out'}"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "aime24     greedy" in said and "66.7%" in said and "33.3%" in said
    results = read_results(tmp_path / "out/aime24/results.json")
    assert results["decodings"]["greedy"]["metrics"]["accuracy"] == pytest.approx(2 / 3)
    assert results["data"]["files"].keys() == {"test.jsonl"} and results["data"]["rows"] == 3
    assert main(words) == 0  # again: nothing is evaluated twice
    assert "3 questions" not in capsys.readouterr().out


def test_two_do_not_write_into_one_folder_at_once(
    aime: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*aime, *replayed(tmp_path), f"output={tmp_path / 'out'}"]
    with acquire(tmp_path / "out" / "aime24.lock"):
        assert main(words) == 1
        assert "It is being evaluated already" in capsys.readouterr().err
        assert not (tmp_path / "out/aime24").exists()
    assert main(words) == 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["aime24"]


def test_one_that_another_machine_took_over_ends_and_says_so(
    aime: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = dataclasses.replace(this_process(), host="another-host")

    def taken_over_at_once(path: Path) -> Lock:
        lock = acquire(path)
        path.write_text(json.dumps(dataclasses.asdict(elsewhere)))
        return lock

    monkeypatch.setattr("experiments.locks.acquire", taken_over_at_once)
    assert main([*aime, *replayed(tmp_path), f"output={tmp_path / 'out'}"]) == 1
    assert f"has taken the evaluation over: {tmp_path / 'out' / 'aime24.lock'}" in capsys.readouterr().err
    assert not (tmp_path / "out/aime24/results.json").exists()
    assert [path.name for path in (tmp_path / "out").glob("*.lock")] == ["aime24.lock"], "it is the other's"


def test_a_checkpoint_answers_two_benchmarks_into_the_results_folder(
    aime: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = build_tiny_policy(tmp_path / "policy")
    write_folder("math500", tmp_path / "data" / "math500")
    words = [word for word in aime if not word.startswith(("benchmark=", "~"))]
    words += ["benchmark=aime24,math500", f"checkpoint={policy}", f"paths.root={tmp_path / 'results'}"]
    words += ["device=cpu", "dtype=float32", "max_gen_toks=6", "chat_template=false", "seed=5"]
    words += ["decodings.t1={temperature: 1.0, samples: 4}", "pass_k=[1,4]"]
    assert main(words) == 0
    assert "math500" in capsys.readouterr().out
    found: dict[str, Any] = {
        path.parent.name: read_results(path)
        for path in (tmp_path / "results/evaluations").glob("policy-*/*/results.json")
    }
    assert found.keys() == {"aime24", "math500"}
    for results in found.values():
        assert (results["seed"], results["n_questions"]) == (5, 3)
        assert set(results["decodings"]["t1"]["metrics"]) >= {"avg_at_4", "pass_at_4", "maj_at_4"}


@pytest.mark.parametrize(
    ("drop", "add", "code", "message"),
    [
        ("benchmark=", [], 2, "No benchmark is named"),
        ("benchmark=", ["benchmark=aime23"], 2, 'There is no benchmark "aime23"'),
        ("lm=", ["lm=hf"], 2, "no checkpoint is named"),
        ("data.root=", ["data.root=/nowhere"], 1, "no data folder at /nowhere; set data.root"),
        ("data.splits.test.rows", ["data.splits.test.rows=30"], 1, "3 rows where aime24, split test, has 30"),
        ("lm_options.outputs", ["lm_options.outputs=/nowhere.jsonl"], 1, "no recorded outputs at /nowhere"),
        ("~", [], 1, "lower samples"),
        ("none", ["batch"], 2, '"batch" is not of the form key=value'),
        ("none", ["max_gen_tok=5"], 2, "max_gen_tok"),
    ],
)
def test_a_wrong_call_is_one_screen_that_says_what_to_do(
    aime: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    drop: str,
    add: list[str],
    code: int,
    message: str,
) -> None:
    words = [*aime, *replayed(tmp_path), f"output={tmp_path / 'out'}"]
    kept = [word for word in words if not word.startswith(drop)]
    if "lm=hf" in add:
        kept = [word for word in kept if not word.startswith("lm_options")]
    assert main([*kept, *add]) == code
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error
    assert not (tmp_path / "out/aime24/results.json").exists()
