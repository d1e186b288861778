"""What a user named reaches the shell and sbatch as data, whatever characters it holds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rehearsal import CLUSTER

from experiments.cluster_settings import ClusterSettings, JobShape, SlurmSettings
from experiments.schema import build_settings
from slurm.script import batch_script, index_ranges, job_name, sbatch_options

HOSTILE = [
    "plain",
    "with space",
    "it's",
    'say "x"',
    "$(touch pwned)",
    "`touch pwned`",
    "$HOME",
    "a; touch pwned",
    "a\n#SBATCH --uid=0\ntouch pwned",
    "a && touch pwned",
    "back\\slash",
    "ünïcode 統計",
    "%A_%j",
    "-leading",
    "",
]
PRINT = (
    "import json, os, sys; print(json.dumps([sys.argv[1:], os.environ['VALUE'], os.environ['PYTHONPATH']]))"
)


def slurm() -> SlurmSettings:
    cluster, problems = build_settings(ClusterSettings, CLUSTER)
    assert cluster is not None and cluster.slurm is not None, problems
    return cluster.slurm


@pytest.mark.parametrize("text", HOSTILE)
def test_a_script_hands_names_and_values_on_as_they_are(text: str, tmp_path: Path) -> None:
    code = Path(f"/code {text}")
    script = batch_script(text, [], {"VALUE": text}, code, [sys.executable, "-c", PRINT, text, "last"])
    path = tmp_path / "script.sh"
    path.write_text(script, encoding="utf-8")
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": "before", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        ["bash", str(path)], capture_output=True, text=True, cwd=tmp_path, env=environment, check=True
    )
    assert json.loads(done.stdout) == [[text, "last"], text, f"{code}:before"]
    assert [each.name for each in tmp_path.iterdir()] == ["script.sh"]


@given(st.text(min_size=1))
def test_a_job_name_is_short_and_harmless(text: str) -> None:
    name = job_name(text, "train")
    assert len(name) <= 60
    assert all(letter.isascii() and (letter.isalnum() or letter in "._-") for letter in name)
    assert "\n" not in batch_script(text, [], {}, Path("code"), ["true"]).splitlines()[1]
    assert batch_script(text, [], {}, Path("code"), ["true"]).splitlines()[2] == "set -e"


@pytest.mark.parametrize("text", [text for text in HOSTILE if text])
def test_every_option_is_one_argument(text: str) -> None:
    options = sbatch_options(
        name=job_name(text),
        folder=Path("/results") / text,
        comment="fastrl:x:1",
        indices=[0, 1, 2, 5],
        depends_on="aftercorr:7",
        nodes=1,
        shape=JobShape(gpus=2, cpus=3, memory="4G", minutes=90),
        settings=slurm(),
    )
    assert all(option.startswith("--") for option in options)
    assert f"--chdir=/results/{text}" in options
    assert {"--array=0-2,5", "--gres=gpu:2", "--cpus-per-task=3", "--mem=4G", "--time=90"} <= set(options)
    assert {"--dependency=aftercorr:7", "--kill-on-invalid-dep=yes"} <= set(options)


@given(st.sets(st.integers(0, 60), min_size=1))
def test_ranges_name_each_index_once(indices: set[int]) -> None:
    named: list[int] = []
    for part in index_ranges(list(indices)).split(","):
        low, _, high = part.partition("-")
        named += range(int(low), int(high or low) + 1)
    assert named == sorted(indices)
