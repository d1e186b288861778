"""The quota of the results folder, as the commands of Linux and of Lustre tell it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from slurm.doctor.quota import quota_check

HEADING = "     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace"


def test_where_nothing_tells_it_is_unknown_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    check = quota_check(tmp_path)
    assert (check.level, check.found) == ("warn", "unknown: no quota command here")


@pytest.mark.parametrize(
    ("command", "line", "level", "found"),
    [
        (
            "quota",
            "/dev/sda1 50000000 90000000 100000000 0 12 0 0 0",
            "ok",
            "50.0 of 100.0 GB; 12 files, no limit",
        ),
        ("quota", "/dev/sda1 95000000* 90000000 100000000 86400 12 0 0 0", "warn", "95.0 of 100.0 GB"),
        ("quota", "/dev/sda1 5 0 0 0 1000 900 1000 0", "fail", "1000 of 1000 files"),
        ("lfs", "/lustre 50000000 0 100000000 - 7 0 1000 -", "ok", "50.0 of 100.0 GB; 7 of 1000 files"),
        ("quota", "none", "warn", "unknown: quota gave no figures for"),
    ],
)
def test_used_is_shown_of_the_limit_and_judged_by_it(
    command: str, line: str, level: str, found: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / command
    # Over its limit, quota ends with 1.
    script.write_text(
        f"#!/bin/sh\necho 'Disk quotas for user x (uid 1):'\necho '{HEADING}'\necho '{line}'\nexit 1\n"
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path) + os.pathsep + "/bin")
    check = quota_check(tmp_path)
    assert check.level == level
    assert found in check.found
