"""What a result was made from, as digests: a result with other ones is neither reused nor mixed in."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from eval.datasets import dataset_digest
from eval.protocols.base import BenchmarkProtocol
from fastrl.rollouts import Question

TASKS = Path(__file__).parent / "tasks"
"""The folder of lm-eval task files."""

_PACKAGE = Path(__file__).parent
_GRADING = (
    "eval.extraction",
    "eval.grading",
    "eval.lm_eval_task",
    "eval.protocols",
    "eval.rewards",
    "eval.tasks",
)


class _TaskLoader(yaml.SafeLoader):
    """Reads a task file without importing the functions that it names."""


_TaskLoader.add_constructor("!function", lambda loader, node: str(node.value))


def settings_digest(benchmark: Mapping[str, Any]) -> str:
    """sha256 (hex) of a benchmark's config, but for its label and its data set, which has its own digest."""
    settings = {key: value for key, value in benchmark.items() if key not in ("label", "dataset")}
    return _sha256(json.dumps(settings, sort_keys=True))


def result_digests(
    task: str, questions: Sequence[Question], files_digest: str | None, checkpoint_digest: str
) -> dict[str, str]:
    """Digests of the questions, of the files with them and their images (None: no files), of their prompts,
    of the code that grades, and of the checkpoint."""
    files = {} if files_digest is None else {"files": files_digest}
    return {
        "data": dataset_digest(questions),
        **files,
        "prompt": prompts_digest(questions),
        "extractor": extractor_digest(task),
        "checkpoint": checkpoint_digest,
    }


def extractor_digest(task: str) -> str:
    """sha256 (hex) of the sources that turn a response of a task into a verdict.

    They are the module of the task's `process_results` and what it imports, directly or not, of eval's
    extraction, grading, protocols, rewards and tasks. Raises ValueError when there is no such task.
    """
    return _sources_digest(_grading_module(_task_file(task)))


def protocol_digest(protocol: BenchmarkProtocol) -> str:
    """sha256 (hex) of the sources of a protocol and of what they import of eval's grading code."""
    return _sources_digest(_PACKAGE.joinpath(*type(protocol).__module__.split(".")[1:]).with_suffix(".py"))


def prompts_digest(questions: Sequence[Question]) -> str:
    """sha256 (hex) of the prompts of questions, in order."""
    return _sha256(json.dumps([question.prompt for question in questions]))


def _sources_digest(module: Path) -> str:
    pending, found = [module], set[Path]()
    while pending:
        path = pending.pop()
        if path not in found:
            found.add(path)
            pending += _imported(path)
    sources = sorted((path.relative_to(_PACKAGE).as_posix(), path.read_text()) for path in found)
    return _sha256(json.dumps(sources))


def _task_file(task: str) -> Path:
    files = {path.stem: path for path in TASKS.glob("*/*.yaml")}
    if task not in files:
        known = ", ".join(sorted(files))
        raise ValueError(f"there is no lm-eval task {task!r} in {TASKS}; known: {known}")
    return files[task]


def _grading_module(task_file: Path) -> Path:
    config = yaml.load(task_file.read_text(), Loader=_TaskLoader)
    if "process_results" not in config:
        return _grading_module((task_file.parent / config["include"]).resolve())
    module = config["process_results"].rpartition(".")[0]
    return task_file.parent / f"{module}.py"


def _imported(path: Path) -> Iterator[Path]:
    """The files of grading modules that a source file imports with `from eval.… import …`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(_GRADING):
            for module in (node.module, *(f"{node.module}.{name.name}" for name in node.names)):
                place = _PACKAGE.joinpath(*module.split(".")[1:])
                yield from filter(Path.is_file, (place.with_suffix(".py"), place / "__init__.py"))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
