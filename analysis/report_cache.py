"""Whether a written report is still what its records give, by their content, without building it again."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from analysis.file_digests import content_digest, file_digests
from experiments.atomic_files import write_json
from experiments.errors import UserError
from experiments.plan import Plan, plan_path
from experiments.run_directory import RunDirectory

_PACKAGES = ("numpy", "scipy", "pandas", "pyarrow", "matplotlib", "pillow", "jinja2")
_SOURCES = ("*.py", "*.csv", "*.css", "*.js", "*.j2", "*.mplstyle")


def input_digest(root: Path, plan: Plan, formats: Sequence[str]) -> str:
    """A digest of all that a report is made from: the plan, the records' content, this code, its packages.

    Files are known by name, in the plan's order. Raises WriteError when the disk is full.
    """
    digest = hashlib.sha256()
    for text in (*formats, *(f"{name} {importlib.metadata.version(name)}" for name in _PACKAGES)):
        digest.update(f"{text}\n".encode())
    for path in _code():
        digest.update(f"{path.name} {content_digest(path)}\n".encode())
    index = root / "cache" / "digests" / f"{plan.study}.json"
    for path, content in file_digests(_records(root, plan), index):
        digest.update(f"{path.name} {content}\n".encode())
    return digest.hexdigest()


def is_current(root: Path, study: str, digest: str) -> str | None:
    """The page of a report that was made from these inputs and lies there unchanged, else None."""
    try:
        known = json.loads(_cache_path(root, study).read_text(encoding="utf-8"))
        if known["inputs"] != digest:
            return None
        folder = root / "studies" / study
        intact = all(_file_digest(folder / name) == each for name, each in known["files"].items())
        return str(known["page"]) if intact else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def remember(root: Path, study: str, digest: str, names: Iterable[str], page: str) -> None:
    """Note that these files of a study's folder were made from these inputs. Raises WriteError."""
    folder = root / "studies" / study
    files = {name: _file_digest(folder / name) for name in names}
    write_json(_cache_path(root, study), {"inputs": digest, "page": page, "files": files})


def _cache_path(root: Path, study: str) -> Path:
    return root / "cache" / "reports" / f"{study}.json"


def _code() -> list[Path]:
    package = Path(__file__).parent
    return sorted(path for pattern in _SOURCES for path in package.rglob(pattern))


def _records(root: Path, plan: Plan) -> Iterable[Path]:
    yield plan_path(root, plan.study)
    yield root / "studies" / plan.study / "correlate" / "correlate.json"
    yield from sorted((root / "data").glob("*/data_card.json"))
    for cell in plan.cells:
        run = RunDirectory(root / "runs" / cell.run_id)
        yield from (run.config_path, run.status_path, run.provenance_path, run.steps_path)
        for stage in cell.stages:
            benchmark = stage.removeprefix("evaluate-")
            if benchmark != stage:
                yield from (run.results_path(benchmark), run.samples_path(benchmark))
                yield from _start_records(run, benchmark)


def _start_records(run: RunDirectory, benchmark: str) -> Iterable[Path]:
    """What the starting policy answered; nothing where the run has no record, or a damaged one."""
    with suppress(UserError):
        start = run.start_path(benchmark)
        names = ("results.json", "samples.parquet", "questions.parquet")
        return [] if start is None else [start / name for name in names]
    return []


def _file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
