"""math-verify in killable workers: verdicts, limits, hostile answers, memory, shutdown. Real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from adversarial_answers import N_ANSWERS, adversarial_answers

from eval.grading.open_answers import OpenAnswerGrader
from eval.grading.pool import MathVerifyPool, PoolSettings

SETTINGS = PoolSettings(workers=1, seconds_per_pair=0.6, megabytes_per_worker=1024, pairs_per_process=50)
NEVER_ENDS = ("$12345$", "$9^{9^{9}}$")


@pytest.fixture(scope="module")
def pool() -> Iterator[MathVerifyPool]:
    with MathVerifyPool(SETTINGS) as running:
        yield running


def test_verdicts_are_those_of_math_verify_in_order(pool: MathVerifyPool) -> None:
    pairs = [("$x+1$", "$1+x$"), ("$x+1$", "$x+2$"), ("140°", "it is 140"), ("$(1,2)$", "$(2,1)$")]
    assert pool.equal(pairs) == [True, False, True, False]
    assert pool.equal([]) == []


def test_a_pair_over_the_limit_is_not_equal_and_is_counted(pool: MathVerifyPool) -> None:
    before = pool.counts
    assert pool.equal([("$x$", "$x$"), NEVER_ENDS, ("$2x$", "$x+x$")]) == [True, False, True]
    assert pool.counts.compared == before.compared + 3
    assert pool.counts.timed_out == before.timed_out + 1
    assert pool.counts.lost == before.lost


def test_a_worker_that_is_killed_is_replaced(pool: MathVerifyPool) -> None:
    pool.equal([("$x$", "$x$")])
    (killed,) = pool.process_ids
    os.killpg(killed, signal.SIGKILL)
    before = pool.counts.lost
    assert pool.equal([("$x$", "$x$"), ("$x$", "$x$")]) == [False, True]
    assert pool.counts.lost == before + 1
    assert pool.process_ids != [killed]


def test_a_process_is_replaced_after_its_number_of_pairs() -> None:
    settings = PoolSettings(workers=1, seconds_per_pair=1.0, megabytes_per_worker=1024, pairs_per_process=1)
    with MathVerifyPool(settings) as pool:
        assert pool.equal([("$x$", "$x$")] * 3) == [True] * 3
        assert children_of(pool.process_ids) == []


def test_the_process_that_compares_has_an_address_space_limit(pool: MathVerifyPool) -> None:
    pool.equal([("$x$", "$x$")])
    (child,) = children_of(pool.process_ids)
    limits = Path(f"/proc/{child}/limits").read_text().splitlines()
    (address_space,) = [line for line in limits if line.startswith("Max address space")]
    assert address_space.split()[3] == str(SETTINGS.megabytes_per_worker << 20)


def test_threads_of_the_caller_share_the_pool(pool: MathVerifyPool) -> None:
    found: list[list[bool]] = []
    threads = [
        threading.Thread(target=lambda: found.append(pool.equal([("$x$", "$x$"), ("$x$", "$y$")])))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[True, False]] * 4


def test_two_hundred_hostile_answers_neither_run_nor_hang_nor_kill_the_pool(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    answers = adversarial_answers(str(marker))
    assert len(answers) == N_ANSWERS
    with OpenAnswerGrader(SETTINGS) as grader:
        grader.equal([("x", "x+0y")])
        workers, before = grader.pool.process_ids, megabytes(grader.pool.process_ids)
        gold = ("x+1", "12", "\\frac{1}{2}", "C")
        verdicts = grader.equal([(gold[i % 4], answer) for i, answer in enumerate(answers)])
        after = megabytes(grader.pool.process_ids)
        assert grader.equal([("2x+y", "y+x+x")]) == [True]
        assert grader.pool.process_ids == workers
        assert grader.pool.counts.lost == 0
    assert not marker.exists()
    assert after <= before + 50
    equal = [answer for answer, verdict in zip(answers, verdicts, strict=True) if verdict]
    assert all(len(answer) < 60 for answer in equal)


def test_hostile_answers_to_math_verify_itself_kill_no_worker(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    answers = adversarial_answers(str(marker))[::8]
    with MathVerifyPool(SETTINGS) as pool:
        pool.equal([("12", answer) for answer in answers])
        assert pool.equal([("$x$", "$x$")]) == [True]
    assert not marker.exists()


def test_closing_ends_the_workers(pool: MathVerifyPool) -> None:
    with MathVerifyPool(SETTINGS) as closing:
        closing.equal([("$x$", "$x$")])
        ids = closing.process_ids
    assert ids and all(not Path(f"/proc/{pid}").exists() for pid in ids)
    with pytest.raises(RuntimeError, match="closed"):
        closing.equal([("$x$", "$x$")])


def test_workers_end_with_the_process_that_started_them() -> None:
    code = (
        "import os\n"
        "from eval.grading.open_answers import shared_grader\n"
        "assert shared_grader().equal([('x+1', '1+x')]) == [True]\n"
        "print(*shared_grader().pool.process_ids, flush=True)\n"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    ids = done.stdout.split()
    assert ids and all(not Path(f"/proc/{pid}").exists() for pid in ids)


@pytest.mark.parametrize("name", ["workers", "seconds_per_pair", "megabytes_per_worker", "pairs_per_process"])
def test_a_limit_of_zero_is_refused(name: str) -> None:
    values = {"workers": 1, "seconds_per_pair": 1.0, "megabytes_per_worker": 512, "pairs_per_process": 9}
    with pytest.raises(ValueError, match=name):
        PoolSettings(**{**values, name: 0})  # type: ignore[arg-type]


def children_of(ids: list[int]) -> list[int]:
    """Processes that the workers have forked and not yet ended."""
    return [
        int(child) for pid in ids for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    ]


def megabytes(ids: list[int]) -> float:
    """Resident memory of the largest process of the workers."""
    return max(
        int(line.split()[1]) / 1024
        for pid in [*ids, *children_of(ids)]
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("VmRSS")
    )
