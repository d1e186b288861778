"""The rules of docs/design.md on the code: who may import whom, what stays light, how files are named."""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("fastrl", "eval", "experiments", "slurm", "analysis")
LONGEST_FILE = 400
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}
HEAVY = ("torch", "transformers", "hydra", "omegaconf", "mlflow", "pandas", "matplotlib", "lm_eval", "scipy")


@dataclass(frozen=True)
class Import:
    """One import in one module. at_load: run when the module is imported, not in a function or for types."""

    module: str
    target: str
    line: int
    at_load: bool

    def __str__(self) -> str:
        return f"{self.module}:{self.line} imports {self.target}"


@cache
def modules() -> dict[str, Path]:
    """Every module of the packages, by its dotted name."""
    found = {}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def imports() -> tuple[Import, ...]:
    return tuple(
        found
        for module, path in modules().items()
        for found in _imports(module, ast.parse(path.read_text(encoding="utf-8")), True)
    )


def _imports(module: str, node: ast.AST, at_load: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for name in child.names:
                yield Import(module, name.name, child.lineno, at_load)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"{module}:{child.lineno} imports relatively"
            for name in child.names:
                full = f"{child.module}.{name.name}"
                target = full if full in modules() else str(child.module)
                yield Import(module, target, child.lineno, at_load)
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            for part in child.body:
                yield from _imports(module, ast.Module([part], []), False)
            for part in child.orelse:
                yield from _imports(module, ast.Module([part], []), at_load)
        else:
            inner = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from _imports(module, child, at_load and not inner)


def within(name: str, *rooms: str) -> bool:
    """Whether a dotted name is one of the rooms or inside one."""
    return any(name == room or name.startswith(f"{room}.") for room in rooms)


def offenders(is_wrong: Callable[[Import], bool]) -> list[str]:
    return sorted({str(found) for found in imports() if is_wrong(found)})


COMMAND_LINE = ("experiments.cli", "experiments.commands")


@pytest.mark.parametrize(
    ("package", "others"),
    [
        ("fastrl", ("eval", "experiments", "slurm", "analysis")),
        ("eval", ("experiments", "slurm", "analysis")),
        ("experiments", ("slurm", "analysis")),
        ("slurm", ("analysis",)),
        ("analysis", ("fastrl", "eval", "slurm")),
    ],
)
def test_imports_point_one_way(package: str, others: tuple[str, ...]) -> None:
    assert not offenders(
        lambda found: (
            within(found.module, package)
            and within(found.target, *others)
            and not within(found.module, *COMMAND_LINE)
        )
    )


def test_the_command_line_imports_the_upper_rooms_inside_functions() -> None:
    assert not offenders(
        lambda found: (
            within(found.module, *COMMAND_LINE)
            and within(found.target, "slurm", "analysis", "eval")
            and found.at_load
        )
    )


def test_analysis_reads_runs_through_the_run_directory_and_the_plan() -> None:
    allowed, open_modules = set(), ["experiments.run_directory", "experiments.plan", "experiments.errors"]
    while open_modules:
        module = open_modules.pop()
        if module not in allowed:
            allowed.add(module)
            open_modules += [
                found.target
                for found in imports()
                if found.module == module and within(found.target, "experiments")
            ]
    assert not offenders(
        lambda found: (
            within(found.module, "analysis")
            and within(found.target, "experiments")
            and found.target not in allowed
        )
    )


@pytest.mark.parametrize(
    ("library", "rooms"),
    [
        ("hydra", ("experiments",)),
        ("omegaconf", ("experiments", "fastrl.engines.easyr1")),
        ("submitit", ("slurm", "experiments.local")),
        ("mlflow", ("analysis.tracking",)),
        ("lm_eval", ("eval",)),
        ("verl", ("fastrl.engines.easyr1",)),
        ("matplotlib", ("analysis",)),
    ],
)
def test_a_library_stays_in_its_room(library: str, rooms: tuple[str, ...]) -> None:
    assert not offenders(lambda found: within(found.target, library) and not within(found.module, *rooms))


def test_the_method_core_knows_no_torch() -> None:
    assert not offenders(
        lambda found: (
            within(found.module, "fastrl")
            and within(found.target, "torch", "transformers")
            and not within(found.module, "fastrl.objectives", "fastrl.engines")
        )
    )


def test_no_two_modules_import_each_other() -> None:
    graph: dict[str, set[str]] = {module: set() for module in modules()}
    for found in imports():
        if found.at_load and found.target in graph and found.target != found.module:
            graph[found.module].add(found.target)
    graphlib.TopologicalSorter(graph).prepare()


def loaded_by(statement: str) -> set[str]:
    """The top-level names of all modules in a fresh process after a statement."""
    code = f"{statement}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_packages_and_the_command_line_loads_nothing_heavy() -> None:
    loaded = loaded_by(f"import {', '.join(PACKAGES)}, experiments.cli")
    assert set(PACKAGES) <= loaded
    assert loaded.isdisjoint(HEAVY)


def test_the_method_core_needs_numpy_alone() -> None:
    core = ("rollouts", "advantages", "jaccard", "alignment", "method")
    parts = ("selectors", "schedules", "filters", "objectives")
    loaded = loaded_by("import " + ", ".join(f"fastrl.{name}" for name in core + parts))
    others = {name for name in loaded - set(sys.stdlib_module_names) - {"fastrl", "numpy"} if name[0] != "_"}
    assert not others - environment_hooks()


def test_the_train_stage_loads_neither_hydra_nor_evaluation_nor_tracking() -> None:
    loaded = loaded_by("import experiments.train_stage, experiments.stage")
    assert loaded.isdisjoint({"hydra", "lm_eval", "mlflow", "pandas", "matplotlib", "submitit"})


def environment_hooks() -> set[str]:
    """What site packages load at every start of Python."""
    return loaded_by("pass") - set(sys.stdlib_module_names)


def test_names_say_what_a_module_holds() -> None:
    files = [*modules().values(), *(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    vague = [str(path) for path in files if VAGUE_NAMES & {path.stem, *path.relative_to(ROOT).parent.parts}]
    assert not vague


def test_no_file_is_too_long() -> None:
    lengths = {module: path.read_text(encoding="utf-8").count("\n") for module, path in modules().items()}
    assert not {module: length for module, length in lengths.items() if length > LONGEST_FILE}


def test_every_folder_with_modules_is_a_package() -> None:
    folders = {path.parent for path in modules().values()}
    assert not [str(folder) for folder in folders if not (folder / "__init__.py").exists()]
