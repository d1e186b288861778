"""The report as a whole: its files, its pages, and that nothing in the records can break them."""

from __future__ import annotations

import hashlib
import html.parser
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from synthetic_study import ALL_FIGURES, ALL_TABLES, FASTRL, FULL_ARMS, GRPO, LAG_ARMS, write_study

from analysis.report import FORMATS, build_report
from experiments.errors import UserError

HOSTILE = "<script>alert(1)</script> & \"q\" 's' | 50 % $x$ _ # \\end{tabular} τ [a] `c`"
VOID = {"meta", "img", "br", "hr", "link", "input"}


class Page(html.parser.HTMLParser):
    """Collects tags and text, and checks that every tag is closed where it should be."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.open: list[str] = []
        self.text: list[str] = []
        self.sources: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def parsed(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    page.close()
    assert page.open == []
    return page


def digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "plan.json")
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results root with the reports of every kind of arm and of the lag panel."""
    root = tmp_path_factory.mktemp("reports")
    write_study(root, [*(replace(arm, seeds=2) for arm in FULL_ARMS), *LAG_ARMS], "full")
    build_report(root, "full")
    return root


def test_a_report_has_a_file_for_everything_that_the_plan_names(root: Path) -> None:
    expected = {f"tables/{name}.{suffix}" for name in ALL_TABLES for suffix in ("md", "tex", "csv")}
    expected |= {f"figures/{name}.{suffix}" for name in ALL_FIGURES for suffix in ("png", "pdf")}
    expected |= {"report.html", "report.md", "tables/claims.csv"}
    assert set(digests(root / "studies" / "full")) == expected


def test_the_page_is_one_file_without_scripts_that_reaches_for_nothing(root: Path) -> None:
    page = parsed(root / "studies" / "full" / "report.html")
    assert page.tags["script"] == 0
    assert page.tags["table"] == len(ALL_TABLES) + 1
    assert page.tags["img"] == len(ALL_FIGURES)
    assert all(source.startswith(("data:image/svg+xml;base64,", "#")) for source in page.sources)


def test_every_value_on_the_page_tells_its_runs(root: Path) -> None:
    text = (root / "studies" / "full" / "report.html").read_text(encoding="utf-8")
    cells = re.findall(r'<td class="[^"]*" title="([^"]*)">', text)
    assert len(cells) > 300
    with_numbers = [title for title in cells if "seed" in title and ";" in title]
    assert with_numbers and all(re.search(r"runs: \S+-s\d-", title) for title in with_numbers)


def test_the_same_records_give_the_same_bytes_wherever_they_lie(root: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    shutil.copytree(root / "runs", moved / "runs")
    (moved / "studies" / "full").mkdir(parents=True)
    shutil.copy(root / "studies" / "full" / "plan.json", moved / "studies" / "full")
    build_report(moved, "full")
    assert digests(moved / "studies" / "full") == digests(root / "studies" / "full")


def test_a_study_with_missing_runs_still_reports(tmp_path: Path) -> None:
    write_study(tmp_path, [replace(GRPO, seeds=3), replace(FASTRL, seeds=3)], figures=["figure1"])
    shutil.rmtree(tmp_path / "runs" / GRPO.run_id(2))
    spoilt = tmp_path / "runs" / FASTRL.run_id(0) / "steps.jsonl"
    spoilt.write_text(spoilt.read_text().replace('"actor/entropy": 0.4', '"actor/entropy": NaN, "x": 0.4', 1))
    page = build_report(tmp_path, "laptop")
    text = " ".join(parsed(page).text)
    assert "2 of 6 runs missing or incomplete" in text
    assert "train not started: GRPO, seeds 2." in text
    assert re.search(r"FastRL, seed 0: set aside. runs/\S+/steps.jsonl, line \d+: actor/entropy is nan", text)
    assert "2 of 6 runs missing or incomplete" in (page.parent / "report.md").read_text()


def test_a_study_without_a_single_run_still_reports(tmp_path: Path) -> None:
    write_study(tmp_path, [GRPO, FASTRL])
    shutil.rmtree(tmp_path / "runs")
    page = build_report(tmp_path, "laptop")
    text = " ".join(parsed(page).text)
    assert "0 trained of 10 planned" in text
    assert "Not drawn: no finished run of FastRL" in " ".join(text.split())
    assert not list((page.parent / "figures").glob("*")) if (page.parent / "figures").exists() else True


def test_a_figure_that_lost_its_data_leaves_no_stale_file(tmp_path: Path) -> None:
    write_study(tmp_path, [replace(GRPO, seeds=1)], figures=["figure1"], tables=["table1"])
    build_report(tmp_path, "laptop")
    assert (tmp_path / "studies/laptop/figures/figure1.png").exists()
    shutil.rmtree(tmp_path / "runs")
    build_report(tmp_path, "laptop")
    assert not (tmp_path / "studies/laptop/figures/figure1.png").exists()


def test_hostile_names_break_no_page(tmp_path: Path) -> None:
    arms = [replace(GRPO, seeds=3), replace(FASTRL, seeds=3, label=HOSTILE)]
    write_study(tmp_path, arms, figures=["figure1"])
    page = build_report(tmp_path, "laptop")
    found = parsed(page)
    assert found.tags["script"] == 0
    assert any(HOSTILE in text for text in found.text)
    markdown = (page.parent / "report.md").read_text()
    assert "<script" not in markdown.replace("\\<", "")
    tex = (page.parent / "tables" / "table1.tex").read_text()
    assert tex.count("\\end{tabular}") == 1


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_latex_tables_compile_with_hostile_names(tmp_path: Path) -> None:
    arms = [replace(GRPO, seeds=3), replace(FASTRL, seeds=3, label=f"[2pt] {HOSTILE} 😀 é")]
    write_study(tmp_path, arms, figures=[])
    folder = build_report(tmp_path, "laptop", formats=("tex",))
    inputs = "\n".join(f"\\input{{{folder}/tables/{name}.tex}}" for name in ALL_TABLES)
    preamble = "\\documentclass{article}\\usepackage{booktabs,graphicx}"
    (tmp_path / "document.tex").write_text(f"{preamble}\\begin{{document}}{inputs}\\end{{document}}")
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "document.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]


def test_only_writes_what_it_names_and_no_page(tmp_path: Path) -> None:
    write_study(tmp_path, [replace(GRPO, seeds=1), replace(FASTRL, seeds=1)])
    folder = build_report(tmp_path, "laptop", only=["table8", "figure3"], formats=("csv", "png"))
    assert set(digests(folder)) == {"tables/table8.csv", "figures/figure3.png"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"only": ["table99"]}, 'no table or figure "table99"'),
        ({"only": ["tabel1"]}, 'no table or figure "tabel1"'),
        ({"formats": ["docx"]}, 'no format "docx"'),
    ],
)
def test_unknown_names_are_errors_with_a_way_out(
    tmp_path: Path, arguments: dict[str, list[str]], message: str
) -> None:
    write_study(tmp_path, [replace(GRPO, seeds=1)])
    with pytest.raises(UserError, match=message) as caught:
        build_report(tmp_path, "laptop", **arguments)
    assert caught.value.way_out


def test_a_plan_that_names_an_unknown_table_is_an_error(tmp_path: Path) -> None:
    write_study(tmp_path, [replace(GRPO, seeds=1)], tables=["table0"])
    with pytest.raises(UserError, match='no table "table0"'):
        build_report(tmp_path, "laptop")


def test_importing_the_packages_pulls_nothing_heavy() -> None:
    code = (
        "import sys, analysis, analysis.tables, analysis.figures, analysis.claims, analysis.report; "
        "print(sorted({'pandas', 'matplotlib', 'scipy', 'torch', 'mlflow', 'jinja2'} & set(sys.modules)))"
    )
    root = Path(__file__).parents[2]
    assert subprocess.check_output([sys.executable, "-c", code], cwd=root, text=True).strip() == "[]"


@pytest.mark.browser
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
@pytest.mark.parametrize("width", [380, 1400])
def test_the_page_does_not_overflow(root: Path, tmp_path: Path, width: int) -> None:
    page = root / "studies" / "full" / "report.html"
    measure = (
        f"<iframe id=f src='{page.as_uri()}' style='border:0;width:{width}px;height:900px'></iframe><script>"
        "f.onload=()=>{const d=f.contentDocument.documentElement;"
        "document.body.dataset.width=d.scrollWidth;document.body.dataset.tables="
        "f.contentDocument.querySelectorAll('table').length}</script>"
    )
    (tmp_path / "frame.html").write_text(f"<!doctype html><body>{measure}")
    command = [
        "chromium",
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--allow-file-access-from-files",
        "--virtual-time-budget=5000",
        f"--user-data-dir={tmp_path / 'profile'}",
        "--dump-dom",
        (tmp_path / "frame.html").as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found = dict(re.findall(r'data-(\w+)="(\d+)"', done.stdout))
    assert int(found["tables"]) == len(ALL_TABLES) + 1
    assert int(found["width"]) <= width


def test_all_formats_are_written_by_default(root: Path) -> None:
    suffixes = {Path(name).suffix.removeprefix(".") for name in digests(root / "studies" / "full")}
    assert suffixes == set(FORMATS)
    assert json.loads((root / "studies" / "full" / "plan.json").read_text())["study"] == "full"


def test_a_study_without_its_baseline_compares_with_its_first_arm_and_says_so(tmp_path: Path) -> None:
    write_study(tmp_path, [replace(FASTRL, seeds=1)])
    page = build_report(tmp_path, "laptop").with_suffix(".md").read_text(encoding="utf-8")
    assert (
        f'The baseline "grpo" has no run in this plan; speeds and changes are relative to {FASTRL.label}'
        in page
    )
