"""The command line as a user meets it: real processes, their output and exit codes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from experiments.cli import COMMANDS, main
from experiments.commands.report import _names
from experiments.errors import UserError
from experiments.identity import run_id
from experiments.plan import write_plan
from experiments.run_directory import RunDirectory
from experiments.study import plan_study
from fastrl import __version__

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "hydra", "omegaconf", "pydantic", "yaml", "numpy", "pandas", "mlflow", "rich", "lm_eval")


def fastrl(*words: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-m", "experiments.cli", *words],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment,
        check=False,
    )


def test_help_names_every_command() -> None:
    done = fastrl("--help")
    assert done.returncode == 0
    assert all(f"  {name} " in done.stdout for name in COMMANDS)


def test_version() -> None:
    assert fastrl("--version").stdout.strip() == f"fastrl {__version__}"


def test_help_imports_the_standard_library_alone() -> None:
    script = (
        "import sys\n"
        "from experiments.cli import main\n"
        "try:\n"
        "    main(['--help'])\n"
        "except SystemExit:\n"
        f"    print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stderr.strip() == "[]"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_without_heavy_imports(command: str) -> None:
    script = (
        "import sys\n"
        "from experiments.cli import main\n"
        "try:\n"
        f"    main([{command!r}, '--help'])\n"
        "except SystemExit as ended:\n"
        "    heavy = ('torch', 'hydra', 'pydantic', 'pandas', 'mlflow', 'lm_eval')\n"
        "    print(ended.code, [name for name in heavy if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stderr.strip() == "0 []"
    assert f"usage: fastrl {command}" in done.stdout


def test_plan_lists_cells_and_writes_nothing(tmp_path: Path) -> None:
    done = fastrl("plan", "study=laptop", "seed=0", f"paths.root={tmp_path}/results", cwd=tmp_path)
    assert done.returncode == 0
    assert "8 cells in 8 arms" in done.stdout
    assert "FastRL τ=0.6" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_show_prints_the_config_behind_a_cell_number_and_a_run_id(tmp_path: Path) -> None:
    plan, configs = plan_study("laptop", ["seed=0"], tmp_path)
    third = plan.cells[2].run_id
    words = ("study=laptop", "seed=0", f"paths.root={tmp_path}")
    by_number = fastrl("show", *words, "cell=3")
    by_run_id = fastrl("show", *words, f"cell={third}")
    assert by_number.stdout == by_run_id.stdout
    assert yaml.safe_load(by_number.stdout) == configs[third]
    assert third in by_number.stdout.splitlines()[0]


def test_show_prints_the_config_of_a_run_on_disk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan, configs = plan_study("laptop", ["seed=0"], tmp_path)
    name = plan.cells[0].run_id
    RunDirectory.create(tmp_path, name, configs[name])
    assert main(["show", name, f"paths.root={tmp_path}"]) == 0
    shown = yaml.safe_load(capsys.readouterr().out)
    assert run_id(shown) == name


def test_flags_may_stand_between_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "study=laptop", "--arms", "seed=0"]) == 0
    assert "8 cells in 8 arms" in capsys.readouterr().out


def test_config_folder_brings_own_studies_and_methods(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "method").mkdir()
    (tmp_path / "study").mkdir()
    (tmp_path / "method" / "mine.yaml").write_text("defaults: [grpo, _self_]\nname: mine\nlabel: Mine\n")
    study = {
        "title": "Own",
        "baseline": "grpo",
        "clock": "wall",
        "base": [],
        "cells": [{"group": "main", "overrides": "method=grpo,mine"}],
        "report": {
            "tables": ["table1"],
            "figures": [],
            "in_domain": "laptop_geometry",
            "out_of_domain": [],
            "target_accuracy": 0.5,
        },
    }
    (tmp_path / "study" / "own.yaml").write_text(yaml.safe_dump(study))
    assert main(["plan", "study=own", "--config-dir", str(tmp_path)]) == 0
    assert "Mine" in capsys.readouterr().out
    study["report"] = {**study["report"], "tables": ["table0"]}  # type: ignore[dict-item]
    (tmp_path / "study" / "own.yaml").write_text(yaml.safe_dump(study))
    assert main(["plan", "study=own", "--config-dir", str(tmp_path)]) == 2
    assert 'There is no table "table0"' in capsys.readouterr().err


def test_status_shows_every_cell_of_a_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan, _ = plan_study("laptop", ["seed=0"], tmp_path)
    write_plan(tmp_path, plan)
    assert main(["status", "study=laptop", f"paths.root={tmp_path}"]) == 0
    output = capsys.readouterr().out
    assert all(cell.label in output for cell in plan.cells)
    assert f"{sum(len(cell.stages) for cell in plan.cells)} pending" in output


@pytest.mark.parametrize(
    ("words", "complaint", "way_out"),
    [
        (["pln"], 'no command "pln"', 'did you mean "plan"?'),
        (["plan"], "No study is named", "laptop"),
        (["run"], "No study is named", "laptop"),
        (["plan", "study=laptp"], 'no study "laptp"', 'did you mean "laptop"?'),
        (["plan", "laptop"], '"laptop" is not of the form key=value', "study=laptop"),
        (["plan", "study=laptop", "method=fastlr"], 'no method "fastlr"', 'did you mean "fastrl"?'),
        (["plan", "study=laptop", "fastrl.tau=3"], "tau=3", "[0, 1]"),
        (["show", "study=laptop"], "No cell is named", "cell=1"),
        (["show", "study=laptop", "cell=99"], 'no cell "99"', "cell=1"),
        (["show", "no-such-run"], "There is no run here", "fastrl run"),
        (["report", "study=laptop", "seed=1"], '"seed=1" changes nothing here', "leave it out"),
        (["status", "study=laptop", "paths.root=nowhere"], "no plan of the study", "fastrl run study=laptop"),
        (["track", "paths.root=nowhere"], "no study to track", "fastrl run study=laptop"),
        (["track", "study=laptop", "paths.root=nowhere"], 'no plan of the study "laptop"', "fastrl run"),
    ],
)
def test_wrong_usage_is_one_screen_and_exit_code_2(
    words: list[str], complaint: str, way_out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert complaint in captured.err
    assert way_out in captured.err
    assert "Traceback" not in captured.err
    assert len(captured.err.splitlines()) < 24


def test_exit_codes_of_real_processes() -> None:
    done = fastrl("plan", "study=laptp")
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert fastrl("plan", "study=laptop", "--no-such-flag").returncode == 2


def test_debug_shows_where_an_error_comes_from() -> None:
    with pytest.raises(UserError):
        main(["plan", "study=laptp", "--debug"])


def test_failed_work_exits_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "studies" / "laptop").mkdir(parents=True)
    (tmp_path / "studies" / "laptop" / "plan.json").write_text("{")
    assert main(["status", "study=laptop", f"paths.root={tmp_path}"]) == 1
    assert "not valid JSON" in capsys.readouterr().err


def test_hydra_entry_refuses_bad_input_before_anything_runs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "experiments.train", "--multirun", "method=grpo,fastlr"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 2
    assert 'did you mean "fastrl"?' in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_lists_after_a_flag_are_split_at_commas_and_at_spaces() -> None:
    assert _names(["table1,figure1"]) == _names(["table1", "figure1"]) == ["table1", "figure1"]
    assert _names(None) is None
