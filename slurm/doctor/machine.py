"""Python, packages and GPUs, here and in the other interpreters of a cluster."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Iterator, Sequence

from experiments.cluster_settings import Pythons
from experiments.provenance import hardware, package_versions
from slurm.doctor.check import Check, ok

_NEEDED = {
    "control": ("hydra", "pydantic", "pandas", "matplotlib", "mlflow", "yaml"),
    "train": ("torch", "transformers", "numpy", "yaml"),
    "evaluate": ("torch", "transformers", "numpy", "yaml", "pyarrow", "math_verify", "lm_eval"),
}
_OPTIONAL = ("verl", "vllm", "ray")
_OLDEST = (3, 11)
_SECONDS = 60.0
_PROBE = (
    "import importlib.util, json, sys; "
    "print(json.dumps([list(sys.version_info[:2]), "
    "[name for name in sys.argv[1:] if importlib.util.find_spec(name) is None]]))"
)


def machine_checks() -> Iterator[Check]:
    """This machine: interpreter, versions, processors and GPUs."""
    yield ok("machine", f"{platform.node()}, {platform.system()} {platform.machine()}")
    versions = package_versions()
    shown = ", ".join(f"{name} {versions[name]}" for name in ("torch", "transformers") if name in versions)
    yield (
        ok("packages", shown)
        if "torch" in versions
        else Check("packages", "warn", "torch is not installed here", "install the project: see README.md")
    )
    gpus = hardware()["gpus"]
    if gpus:
        yield ok("GPUs here", ", ".join(gpus))
    else:
        yield Check("GPUs here", "warn", "none", "fine on a login node; the laptop studies run on CPUs")


def python_checks(pythons: Pythons, nodes: int) -> Iterator[Check]:
    """Each environment has the packages that its stages import, and which optional ones.

    nodes: of a training; on several it needs Ray.
    """
    for role, needed in _NEEDED.items():
        yield _python_check(role, getattr(pythons, role) or sys.executable, needed)
    train = pythons.train or sys.executable
    found = _probe(train, _OPTIONAL)
    if isinstance(found, str):
        return
    missing = found[1]
    if nodes > 1 and "ray" in missing:
        found_there = f"no ray in {train}, and a training has {nodes} nodes"
        yield Check(
            "Ray in train", "fail", found_there, "install it there, or set cluster.slurm.python.train"
        )
    present = [name for name in _OPTIONAL if name not in missing]
    if "verl" in present:
        yield ok("EasyR1 in train", ", ".join(present))
    else:
        yield Check(
            "EasyR1 in train",
            "warn",
            f"verl is not importable in {train}",
            "only engine=easyr1 needs it: set cluster.slurm.python.train to its environment",
        )


def _python_check(role: str, python: str, needed: Sequence[str]) -> Check:
    name = f"python {role}"
    found = _probe(python, needed)
    key = f"cluster.slurm.python.{role}"
    if isinstance(found, str):
        return Check(name, "fail", found, f"correct {key}")
    version, missing = found
    shown = f"{python}, {'.'.join(map(str, version))}"
    if tuple(version) < _OLDEST:
        return Check(name, "fail", shown, f"3.11 or newer is needed: set {key}")
    if missing:
        return Check(
            name, "fail", f"{shown}, without {', '.join(missing)}", f"install them there, or set {key}"
        )
    return ok(name, shown)


def _probe(python: str, modules: Sequence[str]) -> tuple[list[int], list[str]] | str:
    """The version of an interpreter and which modules it lacks, or why it can't be asked."""
    try:
        done = subprocess.run(
            [python, "-c", _PROBE, *modules], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
        version, missing = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.TimeoutExpired, ValueError, IndexError) as error:
        return f"{python} can't be run: {error}"
    return version, missing
