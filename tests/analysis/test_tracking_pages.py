"""MLflow's own server and pages on tracked runs."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import socket
import subprocess
import sys
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from synthetic_study import write_study
from tracked_study import ONE_RUN, TWO_RUNS, tracked_runs

from analysis.tracking.store import default_uri, open_client
from analysis.tracking.sync import sync_study
from analysis.tracking.ui import serve
from experiments.errors import UserError

PROJECT = Path(__file__).parents[2]


SERVE = (
    "import sys; from pathlib import Path; from analysis.tracking.ui import serve;"
    "sys.exit(serve(Path(sys.argv[1]), '127.0.0.1', int(sys.argv[2])))"
)


@pytest.fixture(scope="module")
def served(empty_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str]]:
    """A results root with two tracked runs, and the address of MLflow's pages on it."""
    root = tmp_path_factory.mktemp("served")
    (root / "tracking").mkdir()
    shutil.copy(empty_store, root / "tracking" / "mlflow.db")
    write_study(root, TWO_RUNS)
    sync_study(root, "laptop", None)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    command = [sys.executable, "-c", SERVE, str(root), str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert f"at http://127.0.0.1:{port}/#/experiments" in process.stdout.readline()
    yield root, f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port))


def test_pages_without_runs_or_port_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No runs have been tracked"):
        serve(tmp_path, "127.0.0.1", 5000)
    (tmp_path / "tracking").mkdir()
    (tmp_path / "tracking" / "mlflow.db").touch()
    with socket.socket() as busy:
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        port = busy.getsockname()[1]
        with pytest.raises(UserError, match=f"127.0.0.1:{port}: Address already in use") as raised:
            serve(tmp_path, "127.0.0.1", port)
    assert raised.value.way_out.endswith(f"--port {port + 1}")


@pytest.mark.slow
@pytest.mark.browser
def test_mlflow_pages_show_the_runs(served: tuple[Path, str], page_text: Callable[[str], str]) -> None:
    root, address = served
    experiment = open_client(default_uri(root)).get_experiment_by_name("laptop")
    assert experiment is not None
    by_name = urllib.parse.urlencode({"orderByKey": "attributes.run_name", "orderByAsc": "true"})
    page = page_text(f"{address}/#/experiments/{experiment.experiment_id}/runs?{by_name}")
    assert "Training runs" in page
    for name in tracked_runs(root):
        assert name in page


@pytest.mark.slow
@pytest.mark.browser
def test_mlflow_pages_draw_runs_side_by_side(
    served: tuple[Path, str], page_text: Callable[[str], str]
) -> None:
    root, address = served
    runs = tracked_runs(root)
    identifiers = json.dumps([run.info.run_id for run in runs.values()])
    experiments = json.dumps([run.info.experiment_id for run in runs.values()][:1])
    query = urllib.parse.urlencode({"runs": identifiers, "experiments": experiments})
    page = page_text(f"{address}/#/compare-runs?{query}")
    assert "Parallel Coordinates" in page
    assert re.search(r"<svg[^>]*main-svg", page), "a chart of Plotly"
    for name in runs:
        assert name in page


@pytest.mark.slow
def test_a_server_takes_runs_as_the_file_does(served: tuple[Path, str], tmp_path: Path) -> None:
    root, address = served
    [arm] = ONE_RUN
    plan = write_study(tmp_path, [dataclasses.replace(arm, label="GRPO elsewhere")], study="remote")
    assert sync_study(tmp_path, "remote", address).added == 1
    assert sync_study(tmp_path, "remote", address).unchanged == 1
    assert tracked_runs(root, "remote").keys() == {plan.cells[0].run_id}
    assert not (tmp_path / "tracking" / "mlflow.db").exists()
