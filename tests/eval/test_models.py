"""Models of public benchmarks: images end to end, a server, recorded outputs, and dying in between."""

from __future__ import annotations

import base64
import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from official_folders import benchmark, png, records, write_folder
from PIL import Image
from shared_data import shared_data, shared_records
from tiny_vision_policy import POSITIONS, build_tiny_vision_policy

from eval.checkpoint import CheckpointError
from eval.datasets.records import DataError
from eval.evaluate import evaluate
from eval.models.journal import Journal
from eval.models.openai import ServerError
from eval.models.response import Response
from eval.results import read_samples

ROOT = Path(__file__).parents[2]
DECODINGS = {"greedy": {"temperature": 0.0, "samples": 1}, "t1": {"temperature": 1.0, "samples": 4}}


def run(
    config: dict[str, Any],
    output: Path,
    checkpoint: Path | None = None,
    stop: Callable[[], bool] | None = None,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """(results, rows of samples)."""
    results = evaluate(
        checkpoint=checkpoint,
        benchmark=config,
        output=output,
        seed=0,
        stop_requested=stop or (lambda: False),
        announce=lambda line: None,
    )
    table, _ = read_samples(output / "samples.parquet")
    return results, table.to_pylist()


# hf-multimodal


@pytest.fixture(scope="session")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_vision_policy(tmp_path_factory.mktemp("vision") / "policy")


def vision_benchmark(name: str, root: Path, rows: int, **changes: Any) -> dict[str, Any]:
    shared = {"lm": "hf-multimodal", "batch_size": 5, "decodings": DECODINGS, "pass_k": [1, 4]}
    return benchmark(name, root, rows, **(shared | changes))


@pytest.fixture(scope="session")
def evaluated(policy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an undisturbed evaluation; the data are beside it."""
    folder = tmp_path_factory.mktemp("undisturbed")
    rows = write_folder("mathvision", folder / "data", n=4)
    run(vision_benchmark("mathvision", folder / "data", rows), folder / "out", policy)
    return folder / "out"


def test_a_model_that_sees_answers_every_question_and_every_repeat(evaluated: Path) -> None:
    samples = read_samples(evaluated / "samples.parquet")[0].to_pylist()
    assert [row["decoding"] for row in samples] == ["greedy"] * 4 + ["t1"] * 16
    assert [row["sample"] for row in samples[4:]] == [0, 1, 2, 3] * 4
    assert len({row["response"] for row in samples[4:]}) > 12
    assert all(row["truncated"] == (row["tokens"] == 12) for row in samples if row["tokens"] == 12)
    results = json.loads((evaluated / "results.json").read_text())
    assert set(results["digests"]) == {"data", "files", "prompt", "extractor", "checkpoint"}
    assert (results["data"]["rows"], results["data"]["images"]) == (4, 4)
    assert set(results["decodings"]["t1"]["breakdown"]) == {"subject", "level", "subject_level"}


def test_another_image_can_change_the_answer(policy: Path, evaluated: Path, tmp_path: Path) -> None:
    rows = write_folder("mathvision", tmp_path / "data", n=4)
    for path in (tmp_path / "data/images").iterdir():
        Image.effect_noise((56, 56), 90).convert("RGB").save(path)
    decodings = {"t1": {"temperature": 1.0, "samples": 4}}
    config = vision_benchmark("mathvision", tmp_path / "data", rows, decodings=decodings)
    _, samples = run(config, tmp_path / "out", policy)
    before = read_samples(evaluated / "samples.parquet")[0].to_pylist()[4:]
    assert [row["response"] for row in samples] != [row["response"] for row in before]


def test_wemath_has_its_official_scores_where_there_is_one_answer_a_question(
    policy: Path, tmp_path: Path
) -> None:
    rows = write_folder("wemath", tmp_path / "data", n=2)
    results, _ = run(vision_benchmark("wemath", tmp_path / "data", rows), tmp_path / "out", policy)
    assert results["decodings"]["greedy"]["official"] and "official" not in results["decodings"]["t1"]


def test_a_prompt_with_images_is_never_cut_to_make_room(policy: Path, tmp_path: Path) -> None:
    rows = write_folder("mathvision", tmp_path / "data", n=1)
    config = vision_benchmark("mathvision", tmp_path / "data", rows, max_gen_toks=POSITIONS - 20)
    with pytest.raises(ValueError, match="lower max_gen_toks"):
        run(config, tmp_path / "out", policy)


@pytest.mark.parametrize("name", ["wemath", "mathvision"])
def test_published_images_go_through_the_model(name: str, policy: Path, tmp_path: Path) -> None:
    data = shared_data() / name
    found = [
        record
        for record in shared_records(f"{name}/test{'mini' if name == 'wemath' else ''}.jsonl.gz")
        if (data / "images" / Path(record.get("image_path") or record["image"]).name).is_file()
        or (data / "images" / (record.get("image_path") or "")).is_file()
    ][:4]
    folder = tmp_path / "data"
    folder.mkdir()
    config = benchmark(name)
    (folder / f"{config['split']}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in found))
    (folder / "images").symlink_to(data / "images")
    greedy = {"greedy": DECODINGS["greedy"]}
    results, samples = run(
        vision_benchmark(name, folder, len(found), decodings=greedy), tmp_path / "out", policy
    )
    assert len(samples) == len(found) > 0 and results["data"]["images"] >= 1


def test_missing_images_are_named_before_the_model_is_loaded(policy: Path, tmp_path: Path) -> None:
    rows = write_folder("mathvision", tmp_path / "data")
    (tmp_path / "data/images/3.png").unlink()
    config = vision_benchmark("mathvision", tmp_path / "data", rows)
    (tmp_path / "broken").mkdir()
    for path in policy.iterdir():
        (tmp_path / "broken" / path.name).write_bytes(b"{}" if path.suffix == ".json" else b"")
    with pytest.raises(DataError, match=r"first images/3.png"):
        run(config, tmp_path / "out", tmp_path / "broken")


# Dying


def test_kill_9_inside_a_decoding_loses_the_unfinished_batch_alone(
    policy: Path, evaluated: Path, tmp_path: Path
) -> None:
    config = vision_benchmark("mathvision", evaluated.parent / "data", 4)
    program = f"""
import json, os, signal, sys
from pathlib import Path
from eval.evaluate import evaluate
asked = iter(range(1000))
def stop():
    if next(asked) == 4:  # one model, one greedy batch, then two of four batches at temperature 1
        os.kill(os.getpid(), signal.SIGKILL)
    return False
evaluate(checkpoint={str(policy)!r}, benchmark=json.load(sys.stdin), output=Path({str(tmp_path)!r}), seed=0,
         stop_requested=stop, announce=print)
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    killed = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(config),
        env=environment,
        text=True,
        capture_output=True,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
    journal = tmp_path / "decodings" / "t1.jsonl"
    finished = journal.read_bytes()
    assert finished.count(b"\n") == 2 and not (tmp_path / "results.json").exists()
    with journal.open("ab") as file:
        file.write(b'{"requests": [0, 1')  # what a kill in the middle of a write leaves
    asked = iter(range(1000))
    batches: list[int] = []
    results, samples = run(config, tmp_path, policy, stop=lambda: bool(batches.append(next(asked))))
    undisturbed = json.loads((evaluated / "results.json").read_text())
    assert samples == read_samples(evaluated / "samples.parquet")[0].to_pylist()
    assert results["decodings"] == undisturbed["decodings"]
    # The model is asked for once per decoding that is left; finished batches are not generated again.
    assert len(batches) == 1 + 4 - (finished.count(b"\n") - 1)
    assert not (tmp_path / "decodings").exists()


def test_a_journal_keeps_whole_lines_of_its_own_origin(tmp_path: Path) -> None:
    said: list[str] = []
    path, origin = tmp_path / "t1.jsonl", {"seed": "0"}
    journal = Journal(path, origin, said.append)
    journal.append([2, 0], [Response("a\n\u2028", 3, False), Response("", None, None)], 1.5)
    journal.append([1], [Response("c", 1, True)], 0.5)
    again = Journal(path, origin, said.append)
    assert len(again) == 2 and again.seconds == 2.0 and said == []
    found = again.finished([2, 0])
    assert found == ["a\n\u2028", ""] and [(r.tokens, r.truncated) for r in found] == [
        (3, False),
        (None, None),
    ]
    assert again.finished([0, 2]) is None
    assert len(Journal(path, {"seed": "1"}, said.append)) == 0
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1] + b'{"requests": [1], "responses": []}\n')
    damaged = Journal(path, origin, said.append)
    assert len(damaged) == 1 and "damaged after 1 batches" in said[0]
    damaged.append([1], [Response("c", 1, True)], 0.5)
    assert path.read_bytes().splitlines()[:2] == b"".join(lines[:2]).splitlines()
    assert len(Journal(path, origin, said.append)) == 2


# A server


class Answering(BaseHTTPRequestHandler):
    """Answers chat completions with the size of the image it got, or the length of the text, and the seed."""

    def do_POST(self) -> None:
        server: Any = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server.asked.append((self.path, dict(self.headers), body))
        if server.busy:
            server.busy -= 1
            self.send_error(503)
            return
        if body["model"] != "tiny":
            self.send_error(404, "no such model")
            return
        content = body["messages"][0]["content"]
        said = f"{len(content)}"
        if isinstance(content, list):
            data = next(part["image_url"]["url"] for part in content if part["type"] == "image_url")
            image = Image.open(io.BytesIO(base64.b64decode(data.partition(",")[2])))
            said = f"{image.size[0]}"
        answer = {
            "choices": [
                {"message": {"content": f"\\boxed{{{said}}} {body['seed']}"}, "finish_reason": "stop"}
            ],
            "usage": {"completion_tokens": 7},
        }
        reply = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Quietly."""


@pytest.fixture
def server() -> Iterator[Any]:
    running: Any = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    running.asked, running.busy = [], 0
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    yield running
    running.shutdown()
    running.server_close()


def server_benchmark(name: str, root: Path, rows: int, server: Any, **options: Any) -> dict[str, Any]:
    url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    shared = {"url": url, "model": "tiny", "workers": 3, "timeout_s": 30, "retries": 1, "key_file": None}
    changes = {"lm": "openai", "lm_options": shared | options, "decodings": DECODINGS, "pass_k": [1, 4]}
    return benchmark(name, root, rows, **changes)


def test_a_server_gets_the_images_and_its_answers_are_scored(server: Any, tmp_path: Path) -> None:
    rows = write_folder("mathvision", tmp_path / "data", n=2)
    (tmp_path / "key").write_text("secret\n")
    server.busy = 1
    config = server_benchmark("mathvision", tmp_path / "data", rows, server, key_file=str(tmp_path / "key"))
    results, samples = run(config, tmp_path / "out")
    width = Image.open(io.BytesIO(png(0))).size[0]
    assert samples[0]["extracted"] == str(width) and samples[0]["tokens"] == 7
    assert {row["truncated"] for row in samples} == {False} and len(samples) == 10
    assert len({row["response"] for row in samples[2:]}) == 8  # each sample has a seed of its own
    path, headers, body = server.asked[-1]
    assert (path, headers["Authorization"]) == ("/v1/chat/completions", "Bearer secret")
    assert body["max_tokens"] == 12 and body["temperature"] == 1.0 and "stop" not in body
    assert results["checkpoint"] == ""
    _, again = run(config, tmp_path / "again")
    assert again == samples


def test_a_server_that_refuses_or_is_away_is_named(server: Any, tmp_path: Path) -> None:
    rows = write_folder("aime24", tmp_path / "data")
    config = server_benchmark("aime24", tmp_path / "data", rows, server, model="other")
    with pytest.raises(ServerError, match=r"404 no such model.*check lm_options.url and lm_options.model"):
        run(config, tmp_path / "out")
    away = server_benchmark("aime24", tmp_path / "data", rows, server, retries=0, url="http://127.0.0.1:9/v1")
    with pytest.raises(ServerError, match=r"127.0.0.1:9/v1/chat/completions gave no answer"):
        run(away, tmp_path / "out")


# Recorded outputs


def replay_benchmark(name: str, root: Path, rows: int, outputs: Path, **options: Any) -> dict[str, Any]:
    shared = {"outputs": str(outputs), "id_field": "id", "response_field": "response"}
    greedy = {"greedy": DECODINGS["greedy"]}
    return benchmark(name, root, rows, lm="replay", lm_options=shared | options, decodings=greedy)


def test_recorded_outputs_are_scored_without_images(tmp_path: Path) -> None:
    rows = write_folder("mathvista", tmp_path / "data")
    for path in (tmp_path / "data/images").iterdir():
        path.unlink()
    outputs = tmp_path / "outputs.jsonl"
    said = [{"pid": record["pid"], "response": record["answer"]} for record in records("mathvista")]
    said[1]["response"] = "no idea"
    outputs.write_text("".join(json.dumps(record) + "\n" for record in said[::-1]))
    config = replay_benchmark("mathvista", tmp_path / "data", rows, outputs, id_field="pid")
    results, samples = run(config, tmp_path / "out")
    assert [row["correct"] for row in samples] == [True, False, True]
    assert results["decodings"]["greedy"]["mean_tokens"] is None
    outputs.write_text(json.dumps(said[0]) + "\n")
    with pytest.raises(DataError, match=r"0 outputs of question '2'"):
        run(config, tmp_path / "out")
    with pytest.raises(DataError, match=r"record 1: no 'id'; it has pid, response"):
        run(replay_benchmark("mathvista", tmp_path / "data", rows, outputs), tmp_path / "out")
    with pytest.raises(CheckpointError, match="no recorded outputs at"):
        run(replay_benchmark("mathvista", tmp_path / "data", rows, tmp_path / "x.jsonl"), tmp_path / "out")


# What is not there


@pytest.mark.parametrize("lm", ["vllm", "vllm-vlm"])
def test_vllm_that_is_not_installed_is_named_with_the_way_out(lm: str, policy: Path, tmp_path: Path) -> None:
    if _importable("vllm"):
        pytest.skip("vLLM is installed here")
    rows = write_folder("aime24", tmp_path / "data")
    options = {"tensor_parallel_size": 1, "gpu_memory_utilization": 0.9, "max_model_len": None}
    config = benchmark("aime24", tmp_path / "data", rows, lm=lm, lm_options=options)
    with pytest.raises(ImportError, match=rf"lm={lm} needs vLLM.*fastrl-suite\[vllm\]"):
        run(config, tmp_path / "out", policy)


def test_a_model_with_weights_needs_a_checkpoint_and_a_gpu_that_is_there(
    policy: Path, tmp_path: Path
) -> None:
    rows = write_folder("aime24", tmp_path / "data")
    config = benchmark("aime24", tmp_path / "data", rows)
    with pytest.raises(CheckpointError, match="lm=hf needs a checkpoint"):
        run(config, tmp_path / "out")
    import torch

    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="torch sees no GPU on this machine; set device=cpu"):
            run(config | {"device": "cuda"}, tmp_path / "out", policy)


@pytest.mark.parametrize(
    ("lm", "options", "message"),
    [
        ("openai", {}, "lm_options = {} do not suit lm=openai, which takes url, model, workers"),
        ("hf", {"url": "http://x"}, "lm=hf, which takes nothing"),
        ("replay", {"outputs": "x"}, "which takes outputs, id_field, response_field"),
    ],
)
def test_options_that_do_not_suit_a_model_are_named(
    lm: str, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message):
        run(benchmark("aime24", tmp_path, 3, lm=lm, lm_options=options), tmp_path / "out")


def _importable(name: str) -> bool:
    import importlib.util

    return importlib.util.find_spec(name) is not None


def test_every_model_is_registered_with_its_options() -> None:
    from eval.model_options import LM_OPTIONS
    from eval.models import MODELS

    assert set(MODELS) == set(LM_OPTIONS)
