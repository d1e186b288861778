"""The program of a math-verify worker process: `python math_verify_worker.py SECONDS MEGABYTES PAIRS`.

It imports math-verify once and forks a child that compares pairs. A line of standard input is a pair, as
JSON [gold, answer]; the line that answers it is one of `VERDICTS`. The kernel ends a child whose pair takes
more than SECONDS of processor time, whatever the child is doing; its address space ends at MEGABYTES. The
next pair gets a new child, as it does after PAIRS pairs, so that no memory gathers. Of this project it
imports nothing.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import resource
import signal
import sys
from typing import BinaryIO, NoReturn

EQUAL, UNEQUAL, TIMED_OUT, LOST = b"equal\n", b"unequal\n", b"timed out\n", b"lost\n"
VERDICTS = (EQUAL, UNEQUAL, TIMED_OUT, LOST)
READY = b"ready\n"


def main() -> None:
    seconds, megabytes, pairs = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    logging.disable(logging.CRITICAL)
    # Imports and prepares what the children then find ready.
    if _compare("$x+1$", "$1+x$") != EQUAL:
        sys.exit("math-verify does not work here")
    answers.write(READY)
    child: _Child | None = None
    for line in sys.stdin.buffer:
        if child is None:
            child = _Child(seconds, megabytes)
        verdict = child.compare(line)
        if verdict in (TIMED_OUT, LOST) or child.compared >= pairs:
            child.end()
            child = None
        answers.write(verdict)


class _Child:
    """A forked process that compares pairs until its input ends."""

    def __init__(self, seconds: float, megabytes: int) -> None:
        questions, answers = os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(questions[1])
            os.close(answers[0])
            _compare_pairs(os.fdopen(questions[0], "rb"), answers[1], seconds, megabytes)
        os.close(questions[0])
        os.close(answers[1])
        self.compared = 0
        self._ask = os.fdopen(questions[1], "wb")
        self._verdicts = os.fdopen(answers[0], "rb")

    def compare(self, line: bytes) -> bytes:
        """The verdict on a pair; `TIMED_OUT` or `LOST` when the child ended over it."""
        self.compared += 1
        try:
            self._ask.write(line)
            self._ask.flush()
        except BrokenPipeError:
            return LOST
        if verdict := self._verdicts.readline():
            return verdict
        status = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        return TIMED_OUT if status is not None and status.si_status == signal.SIGPROF else LOST

    def end(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._ask.close()
        self._verdicts.close()
        os.waitpid(self.pid, 0)


def _compare_pairs(pairs: BinaryIO, verdicts: int, seconds: float, megabytes: int) -> NoReturn:
    resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    for line in pairs:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        verdict = _compare(*json.loads(line))
        signal.setitimer(signal.ITIMER_PROF, 0)
        os.write(verdicts, verdict)
    os._exit(0)


def _compare(gold: str, answer: str) -> bytes:
    from math_verify import parse, verify

    try:
        parsed = parse(gold, parsing_timeout=None), parse(answer, parsing_timeout=None)
        return EQUAL if verify(*parsed, timeout_seconds=None) else UNEQUAL
    except Exception:
        # Whatever text makes the parser fail, it is no answer that equals the gold one.
        return UNEQUAL


if __name__ == "__main__":
    main()
