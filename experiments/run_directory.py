"""A run: the folder of one cell, `<root>/runs/<run_id>/`; the one way to its files for writers and readers.

Standard library and PyYAML only: analysis reads runs through this module.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from experiments.atomic_files import write_file
from experiments.errors import UserError
from experiments.identity import canonical_json, flattened, identity_part
from experiments.locks import acquire_within
from experiments.status import StageStatus, read_status
from experiments.step_log import read_steps

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_CONFIG_LOCK_SECONDS = 60.0


@dataclass(frozen=True)
class RunDirectory:
    """The paths of a run and readers of its files; `path` ends in the run id.

    A reader raises UserError naming the file, the line and the way out when the file is damaged.
    """

    path: Path

    @classmethod
    def create(cls, root: Path, run_id: str, config: Mapping[str, Any]) -> RunDirectory:
        """Make the run's folder and its `config.yaml`; bring an existing one's transient part up to date.

        Benchmarks of an earlier study stay, so that studies share a run; of two settings of one benchmark the
        new one stands. Raises UserError when the existing run was made from another identity part.
        """
        run = cls(root / "runs" / run_id)
        text = _config_text(config)
        if run.config_path.exists() and run.config_path.read_bytes() == text.encode("utf-8"):
            return run
        with acquire_within(run.path / "locks" / "config.lock", _CONFIG_LOCK_SECONDS):
            if run.config_path.exists():
                existing = run.config()
                if canonical_json(identity_part(existing)) != canonical_json(identity_part(config)):
                    raise UserError(
                        f"The run {run_id} has another configuration: {_differences(existing, config)}.",
                        str(run.config_path),
                        "config.yaml was edited or is of another version: restore it, or move the folder",
                        exit_code=1,
                    )
                benchmarks = {**existing["benchmarks"], **config["benchmarks"]}
                merged = {**config, "benchmarks": benchmarks}
                if merged == existing:
                    return run
                text = _config_text(merged)
            write_file(run.config_path, text)
        return run

    @property
    def run_id(self) -> str:
        return self.path.name

    @property
    def root(self) -> Path:
        """The results root that the run lies under."""
        return self.path.parent.parent

    @property
    def config_path(self) -> Path:
        return self.path / "config.yaml"

    @property
    def status_path(self) -> Path:
        return self.path / "status.json"

    @property
    def steps_path(self) -> Path:
        return self.path / "steps.jsonl"

    @property
    def provenance_path(self) -> Path:
        return self.path / "provenance.json"

    @property
    def checkpoints(self) -> Path:
        """The training checkpoints, `step_<N>/` each."""
        return self.path / "checkpoints"

    @property
    def final_checkpoint(self) -> Path:
        """The trained policy, a Hugging Face folder."""
        return self.checkpoints / "final"

    @property
    def rollouts(self) -> Path:
        """Recorded trajectories, `step_<N>.parquet`, when training.record_rollouts_every asks for them."""
        return self.path / "rollouts"

    def lock_path(self, stage: str) -> Path:
        return self.path / "locks" / f"{stage}.lock"

    def attempt_path(self, stage: str, attempt: int) -> Path:
        """The folder with the logs of an attempt."""
        return self.path / "attempts" / f"{stage}-{attempt}"

    def evaluation_path(self, benchmark: str) -> Path:
        return self.path / "eval" / benchmark

    def results_path(self, benchmark: str) -> Path:
        return self.evaluation_path(benchmark) / "results.json"

    def samples_path(self, benchmark: str) -> Path:
        return self.evaluation_path(benchmark) / "samples.parquet"

    def start_path(self, benchmark: str) -> Path | None:
        """What its starting policy answered on a benchmark before training; None before training started."""
        policy = (self.provenance() or {}).get("policy")
        return None if policy is None else self.root / "models" / f"{policy}.start" / benchmark

    def config(self) -> dict[str, Any]:
        """The resolved configuration. Raises UserError when there is none."""
        try:
            config = yaml.load(self.config_path.read_text(encoding="utf-8"), Loader=_Loader)
        except (FileNotFoundError, NotADirectoryError):
            raise UserError(
                "There is no run here: config.yaml is missing.",
                str(self.path),
                "name a folder under <root>/runs, or create the run: fastrl run study=NAME",
            ) from None
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            mark = getattr(error, "problem_mark", None)
            line = f", line {mark.line + 1}" if mark else ""
            raise self._damaged_config(line, getattr(error, "problem", None) or str(error)) from None
        if not isinstance(config, dict):
            raise self._damaged_config("", f"it holds {type(config).__name__}, not a mapping")
        return config

    def status(self) -> dict[str, StageStatus]:
        """Each stage's entry, by stage name; a stage without an entry has not been tried."""
        return read_status(self.status_path)

    def steps(self) -> list[dict[str, Any]]:
        """The records of the finished training steps, oldest first; empty before the first."""
        return read_steps(self.steps_path)

    def results(self, benchmark: str) -> dict[str, Any] | None:
        """What `eval/<benchmark>/results.json` holds; None when the benchmark has not been evaluated."""
        return _read_json(
            self.results_path(benchmark), f"delete it and run the stage evaluate-{benchmark} again"
        )

    def provenance(self) -> dict[str, Any] | None:
        """Commit, package versions, hardware and data digests of the training; None before it started."""
        return _read_json(
            self.provenance_path, "delete it; the next attempt of the train stage writes it anew"
        )

    def _damaged_config(self, line: str, reason: str) -> UserError:
        return UserError(
            f"config.yaml can't be read: {reason}.",
            f"{self.config_path}{line}",
            "delete the file and run the study again: it is written anew from the study",
            exit_code=1,
        )


def _config_text(config: Mapping[str, Any]) -> str:
    return "".join(_section(key, json.dumps(value)) for key, value in config.items())


@lru_cache(maxsize=1024)
def _section(key: str, value: str) -> str:
    """A section of config.yaml, from its JSON; a study's cells share most of theirs."""
    return yaml.dump({key: json.loads(value)}, Dumper=_Dumper, sort_keys=False, allow_unicode=True)


def _read_json(path: Path, way_out: str) -> dict[str, Any] | None:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except json.JSONDecodeError as error:
        raise UserError(
            f"{path.name} is not valid JSON: {error.msg}.", f"{path}, line {error.lineno}", way_out, 1
        ) from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path.name} is not text: {error}.", str(path), way_out, 1) from None
    if not isinstance(record, dict):
        raise UserError(
            f"{path.name} holds {type(record).__name__}, not an object.", f"{path}, line 1", way_out, 1
        )
    return record


def _differences(existing: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """The first few keys in which two identity parts differ, with both values."""
    ours, theirs = flattened(identity_part(config)), flattened(identity_part(existing))
    absent = "nothing"
    keys = [key for key in sorted({*ours, *theirs}) if ours.get(key, absent) != theirs.get(key, absent)]
    shown = [f"{key} is {theirs.get(key, absent)} there and {ours.get(key, absent)} here" for key in keys[:3]]
    return "; ".join(shown) + (f"; and {len(keys) - 3} more" if len(keys) > 3 else "")
