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
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from synthetic_study import ALL_FIGURES, ALL_TABLES, FASTRL, FULL_ARMS, GRPO, LAG_ARMS, write_study

import analysis.report
from analysis.report import FORMATS, build_report, check_report
from experiments.cli import main
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
    expected = {f"tables/{name}.{suffix}" for name in ALL_TABLES for suffix in ("md", "tex", "csv", "pdf")}
    expected |= {f"figures/{name}.{suffix}" for name in ALL_FIGURES for suffix in ("png", "pdf", "svg")}
    expected |= {"report.html", "report.md", "tables/claims.csv"}
    assert set(digests(root / "studies" / "full")) == expected


def test_the_page_is_one_file_that_reaches_for_nothing(root: Path) -> None:
    page = parsed(root / "studies" / "full" / "report.html")
    assert page.tags["script"] == 1
    assert page.tags["table"] == len(ALL_TABLES) + 1
    assert page.tags["img"] == len(ALL_FIGURES)
    assert all(source.startswith(("data:image/svg+xml;base64,", "#")) for source in page.sources)


def test_every_value_on_the_page_tells_its_runs(root: Path) -> None:
    text = (root / "studies" / "full" / "report.html").read_text(encoding="utf-8")
    cells = re.findall(r'<td class="[^"]*" title="([^"]*)" data-value=', text)
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
    assert found.tags["script"] == 1, "the page's own"
    assert any(HOSTILE in text for text in found.text)
    markdown = (page.parent / "report.md").read_text()
    assert "<script" not in markdown.replace("\\<", "")
    tex = (page.parent / "tables" / "table1.tex").read_text()
    assert tex.count("\\end{tabular}") == 1


def test_control_characters_of_a_label_reach_no_page(tmp_path: Path) -> None:
    turned = "Gr\u202eOPR\x07"
    write_study(
        tmp_path, [replace(GRPO, seeds=1), replace(FASTRL, seeds=1, label=turned)], figures=["figure1"]
    )
    page = build_report(tmp_path, "laptop")
    for path in (page, page.with_suffix(".md"), *(page.parent / "tables").iterdir()):
        if path.suffix != ".pdf":
            assert not {"\u202e", "\x07"} & set(path.read_text(encoding="utf-8")), path.name


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


def test_words_after_only_and_format_are_words(tmp_path: Path) -> None:
    write_study(tmp_path, [replace(GRPO, seeds=1), replace(FASTRL, seeds=1)])
    words = ["--only", "table8,figure3", "study=laptop", "--format", "csv", f"paths.root={tmp_path}"]
    assert main(["report", *words]) == 0
    assert set(digests(tmp_path / "studies/laptop")) == {"tables/table8.csv"}


def test_an_unknown_name_leaves_no_plan_behind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "study=table1", "--only", "table99", f"paths.root={tmp_path}"]) == 2
    assert 'no table or figure "table99"' in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [["--only", ""], ["--only", ","], ["--format", ""]])
def test_a_flag_without_a_name_is_no_report_of_everything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    write_study(tmp_path, [replace(GRPO, seeds=1)])
    assert main(["report", "study=laptop", f"paths.root={tmp_path}", *words]) == 2
    assert f"{words[0]} names nothing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--only", "figure5"], "figure5: "),
        (["--only", "figure1", "--format", "md"], "tables are written as md, tex, csv, and figures as png"),
    ],
)
def test_a_report_of_nothing_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], reason: str
) -> None:
    write_study(tmp_path, [replace(GRPO, seeds=1)])
    assert main(["report", "study=laptop", *words, f"paths.root={tmp_path}"]) == 1
    error = capsys.readouterr().err
    assert "There is nothing to write" in error and reason in error


def test_a_check_covers_what_was_written_by_name(tmp_path: Path) -> None:
    write_study(tmp_path, [replace(GRPO, seeds=1), replace(FASTRL, seeds=1)], tables=["table1"], figures=[])
    folder = build_report(tmp_path, "laptop", only=["cost"], formats=("csv",))
    assert check_report(tmp_path, "laptop", folder) == ()
    (folder / "tables/cost.csv").write_text("nothing")
    assert [line.partition(":")[0] for line in check_report(tmp_path, "laptop", folder)] == [
        "tables/cost.csv"
    ]


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


FRAME = """<!doctype html><body>
<iframe id=f src='{page}' style='border:0;width:{width}px;height:900px'></iframe>
<script>
f.onload = () => {{
  const page = f.contentDocument, told = document.body.dataset;
  told.width = page.documentElement.scrollWidth;
  told.tables = page.querySelectorAll('table').length;
  told.paper = f.contentWindow.getComputedStyle(page.body).backgroundColor;
  const column = [...page.querySelectorAll('#table1 thead tr:last-child th')].findIndex(
    (each) => each.textContent.includes('Time'));
  const header = page.querySelectorAll('#table1 thead tr:last-child th')[column];
  const values = () => [...page.querySelectorAll('#table1 tbody tr')].map(
    (row) => row.cells[column].dataset.value).join(' ');
  header.click(); told.ascending = values();
  header.click(); told.descending = values();
  page.querySelector('#table1 td[data-value]').click();
  const panel = page.getElementById('provenance');
  told.open = panel.open;
  told.panel = panel.textContent;
  panel.querySelector('a').click();
  told.runs = page.querySelector('#runs details').open;
}};
</script>"""


@pytest.mark.browser
@pytest.mark.parametrize(("width", "scheme"), [(380, "dark"), (1400, "light")])
def test_the_page_fits_sorts_and_shows_where_a_value_comes_from(
    root: Path, tmp_path: Path, browse: Callable[..., Any], width: int, scheme: str
) -> None:
    page = root / "studies" / "full" / "report.html"
    (tmp_path / "frame.html").write_text(FRAME.format(page=page.as_uri(), width=width))
    colours = f"--blink-settings=preferredColorScheme={int(scheme == 'light')}"
    opened = browse((tmp_path / "frame.html").as_uri(), "--allow-file-access-from-files", colours, seconds=5)
    assert opened.console == ()
    found = dict(re.findall(r'data-(\w+)="([^"]*)"', opened.html))
    assert int(found["tables"]) == len(ALL_TABLES) + 1
    assert int(found["width"]) <= width
    assert found["paper"] == {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 23, 27)"}[scheme]
    ascending = [float(value) for value in found["ascending"].split()]
    descending = [float(value) for value in found["descending"].split()]
    assert len(ascending) > 5 and ascending == sorted(ascending) == descending[::-1]
    assert (found["open"], found["runs"]) == ("true", "true")
    slowest = r"commit 0123456789; method=dapo seed=0; runs/dapo-\S+/config\.yaml"  # sorted to the top
    assert re.search(slowest, found["panel"])


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


def test_a_report_is_made_again_only_when_a_record_or_a_file_of_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_study(tmp_path, [replace(GRPO, seeds=1)], tables=["table6", "cost"], figures=[])
    made: list[str] = []
    make = analysis.report.make_report
    monkeypatch.setattr("analysis.report.make_report", lambda *each: made.append("made") or make(*each))
    page = build_report(tmp_path, "laptop", formats=("md", "csv"))
    before = page.read_bytes()
    assert build_report(tmp_path, "laptop", formats=("md", "csv")) == page
    assert len(made) == 1
    page.write_text("edited")
    build_report(tmp_path, "laptop", formats=("md", "csv"))
    assert (len(made), page.read_bytes()) == (2, before)
    log = tmp_path / "runs" / GRPO.run_id(0) / "steps.jsonl"
    log.write_text(log.read_text().replace('"epoch": 0', '"epoch": 1', 1))
    build_report(tmp_path, "laptop", formats=("md", "csv"))
    (tmp_path / "cache" / "reports" / "laptop.json").write_text("{")
    build_report(tmp_path, "laptop", formats=("md", "csv"))
    assert len(made) == 4


def test_a_report_that_is_up_to_date_passes_its_check(root: Path) -> None:
    assert check_report(root, "full", root / "studies" / "full", formats=("md", "csv", "tex", "svg")) == ()


def test_each_file_that_the_records_do_not_give_is_named(root: Path, tmp_path: Path) -> None:
    committed = tmp_path / "committed"
    for name in ("tables/table1.csv", "tables/table8.md", "report.md"):
        (committed / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / "studies" / "full" / name, committed / name)
    path = committed / "tables" / "table1.csv"
    path.write_text(path.read_text().replace(",5,", ",6,").replace(",2,", ",3,"))
    (committed / "tables" / "table77.md").write_text("made up")
    (committed / "notes.md").write_text("no file of a report")
    (committed / "report.png").write_text("a picture of the page")
    assert check_report(root, "full", committed, formats=("md", "csv", "png")) == (
        "tables/table1.csv: differs first in line 2",
        "tables/table77.md: the records and the plan no longer give it",
    )


def test_the_command_checks_a_committed_folder(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = root / "studies" / "full"
    words = ["report", "study=full", f"paths.root={root}", "--check", "--only", "table1", "--format", "csv"]
    assert main([*words, "--against", str(folder)]) == 0
    path = folder / "tables" / "table1.csv"
    content = path.read_bytes()
    path.write_bytes(content + b"\n")
    assert main(words) == 1
    assert "tables/table1.csv: has" in capsys.readouterr().out
    path.write_bytes(content)


def test_a_folder_without_a_report_can_not_be_checked(root: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no report to check"):
        check_report(root, "full", tmp_path)
