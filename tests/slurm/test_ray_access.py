"""The parts of a job's Ray share a token that is the job's own, unless the site has settled it."""

from __future__ import annotations

import pytest

from slurm.ray_nodes import ray_access


def test_each_job_has_a_token_of_its_own() -> None:
    first, second = ray_access({"PATH": "/bin"}), ray_access({})
    assert first["RAY_AUTH_MODE"] == second["RAY_AUTH_MODE"] == "token"
    assert len(first["RAY_AUTH_TOKEN"]) == 64
    assert first["RAY_AUTH_TOKEN"] != second["RAY_AUTH_TOKEN"]


@pytest.mark.parametrize("settled", [{"RAY_AUTH_MODE": "disabled"}, {"RAY_AUTH_TOKEN_PATH": "/site/token"}])
def test_what_the_site_has_settled_stays(settled: dict[str, str]) -> None:
    assert ray_access(settled) == {}


def test_a_token_that_is_there_is_kept() -> None:
    assert ray_access({"RAY_AUTH_TOKEN": "ab" * 32})["RAY_AUTH_TOKEN"] == "ab" * 32
