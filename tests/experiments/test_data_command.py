"""`fastrl data prepare`: as a user runs it, in processes of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eval.datasets import load_questions, parquet_folder
from eval.preparation.prepare import read_card
from experiments.cli import main
from experiments.compose import compose_cell

ROOT = Path(__file__).parents[2]
IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
SIZES = ["dataset.sizes.official.train=4", "dataset.sizes.official.test=2", "dataset.split=official"]


@pytest.fixture
def math_folder(tmp_path: Path) -> Path:
    """Six problems of one subject, 4 + 2."""
    for split, n in (("train", 4), ("test", 2)):
        columns = {
            "problem": [f"{split} {i}?" for i in range(n)],
            "level": ["Level 1"] * n,
            "type": ["Algebra"] * n,
            "solution": [f"\\boxed{{{i}}}" for i in range(n)],
        }
        path = tmp_path / "hub/algebra" / f"{split}-00000-of-00001.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), path)
    return tmp_path / "hub"


def test_a_set_is_prepared_from_a_folder_into_the_results_folder(
    math_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "data",
        "prepare",
        "math",
        "--from",
        str(math_folder),
        f"paths.root={tmp_path / 'results'}",
        *SIZES,
    ]
    assert main(words) == 0
    target = tmp_path / "results/data/math"
    assert pq.read_table(target / "train.parquet").num_rows == 4
    assert f"4 questions  {target / 'train.parquet'}" in capsys.readouterr().out
    assert main(words) == 0  # again: the same files, no complaint


def test_the_laptops_figures_are_drawn_where_training_looks_for_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = "dataset.splits.sizes={train: 32, selection: 8, validation: 8, out_of_domain: 8}"
    root = f"paths.root={tmp_path}"
    assert main(["data", "prepare", "laptop_figures", root, sizes]) == 0
    config = compose_cell([root, sizes])["dataset"]
    folder = parquet_folder(config)
    assert folder is not None and f"32 questions  {folder / 'train.parquet'}" in capsys.readouterr().out
    assert len(load_questions(config, "train")) == 32
    assert main(["data", "prepare", "laptop_figures", root, sizes, "--to", str(tmp_path / "own")]) == 0
    assert (tmp_path / "own/train.parquet").read_bytes() == (folder / "train.parquet").read_bytes()


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["data"], 2, "geometry3k"),
        (["data", "prepare"], 2, "sets: geometry3k, "),
        (["data", "prepare", "geometry"], 2, 'did you mean "geometry3k"?'),
        (["data", "prepare", "laptop_geometry"], 2, "no set that can be prepared"),
        (["data", "fetch", "math"], 2, "is not understood"),
        (["data", "prepare", "math", "seed=1"], 2, '"seed=1" changes nothing here'),
        (["data", "prepare", "math", "dataset.split=half"], 2, "dataset.split"),
        (["data", "prepare", "math", "--to", "a@b"], 2, "EasyR1"),
        (["data", "prepare", "laptop_figures", "--from", "."], 1, "drawn, not read from files"),
        (["data", "prepare", "math", "--from", "/nowhere/at/all"], 1, "there is no folder /nowhere/at/all"),
    ],
)
def test_a_wrong_call_is_one_screen_that_says_what_to_do(
    words: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == code
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error


def test_a_set_of_another_size_names_both_numbers(
    math_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["data", "prepare", "math", "--from", str(math_folder), "--to", str(tmp_path / "out")]
    assert main(words) == 1
    assert "has 6 problems where 12,500 are expected" in capsys.readouterr().err
    assert read_card(tmp_path / "out") is None


def test_a_full_disk_leaves_no_half_set(math_folder: Path, tmp_path: Path) -> None:
    words = ["data", "prepare", "math", "--from", str(math_folder), "--to", str(tmp_path / "out"), *SIZES]
    limited = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "from experiments.cli import main; import experiments.compose, pyarrow.parquet; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500)); sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", limited, *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "no space left" in done.stderr and "Traceback" not in done.stderr
    assert read_card(tmp_path / "out") is None
    assert not (tmp_path / "out/train.parquet").exists()


def test_a_killed_preparation_is_run_again_and_another_one_at_the_same_time_is_refused(
    math_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    n = 40_000  # so many that it is still being read when it is stopped
    columns = {
        "problem": [f"{i}?" for i in range(n)],
        "level": ["Level 1"] * n,
        "type": ["Algebra"] * n,
        "solution": ["\\boxed{1}"] * n,
    }
    pq.write_table(pa.table(columns), math_folder / "algebra/train-00000-of-00001.parquet")
    words = ["data", "prepare", "math", "--from", str(math_folder), "--to", str(tmp_path / "out"), *SIZES]
    words.append(f"dataset.sizes.official.train={n}")
    drafts = tmp_path / "out/.draft"
    running = subprocess.Popen([sys.executable, "-m", "experiments.cli", *words], cwd=ROOT)
    try:
        while not drafts.exists() and running.poll() is None:
            time.sleep(0.005)
        running.send_signal(signal.SIGSTOP)
        assert main(words) == 1
        assert "being prepared by another process" in capsys.readouterr().err
    finally:
        running.send_signal(signal.SIGKILL)
        running.wait()
    assert drafts.exists()
    assert read_card(tmp_path / "out") is None
    assert main(words) == 0
    assert read_card(tmp_path / "out") is not None
    assert not drafts.exists()
