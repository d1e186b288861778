"""The core of the evaluate stage: a checkpoint through benchmarks, by lm-eval, into records on disk."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from eval.benchmark_settings import BenchmarkSettings, DecodingSettings
from eval.datasets import files_of, load_questions
from eval.datasets.public import check_images
from eval.datasets.settings import PublicSettings
from eval.decoding import derived_seed
from eval.digests import TASKS, result_digests, settings_digest
from eval.lm_eval_run import sample_decoding
from eval.models import load_model, model_digest
from eval.models.journal import Journal
from eval.protocols import load_protocol
from eval.protocols.base import BenchmarkQuestion
from eval.results import (
    SCHEMA,
    RecordError,
    decoding_results,
    read_results,
    read_samples,
    write_results,
    write_samples,
)


class EvaluationStopped(RuntimeError):
    """The evaluation was asked to stop. Finished decodings are on disk: the next call goes on from there."""


def evaluate(
    *,
    checkpoint: Path | str | None,
    benchmark: Mapping[str, Any],
    output: Path,
    seed: int,
    stop_requested: Callable[[], bool],
    announce: Callable[[str], None],
) -> dict[str, Any]:
    """Evaluate a checkpoint on one benchmark, like `evaluate_all`; returns what results.json holds."""
    name = benchmark["name"]
    return evaluate_all(
        checkpoint=checkpoint,
        benchmarks={name: benchmark},
        outputs={name: output},
        seed=seed,
        stop_requested=stop_requested,
        announce=announce,
    )[name]


def evaluate_all(
    *,
    checkpoint: Path | str | None,
    benchmarks: Mapping[str, Mapping[str, Any]],
    outputs: Mapping[str, Path],
    seed: int,
    stop_requested: Callable[[], bool],
    announce: Callable[[str], None],
) -> dict[str, dict[str, Any]]:
    """Evaluate a checkpoint on several benchmarks; the model is loaded once for those that ask for the same.

    checkpoint: a Hugging Face folder; None where no benchmark's model has one (a server, recorded outputs).
    benchmarks: configs (`BenchmarkSettings`) by name; outputs: a folder
    for each, which gets results.json and samples.parquet. seed: of the sampling; each decoding derives its
    own. stop_requested: asked before every batch. announce: gets lines for people.

    A benchmark whose results.json came from the same settings, seed, questions, grading code and checkpoint
    is not evaluated again, and no model is loaded for it; a killed evaluation goes on after its last whole
    batch. The data of all benchmarks are checked before a model is loaded. Raises CheckpointError before
    anything heavy is imported, ValueError for a bad setting, DataError (a ValueError) for missing or changed
    data, EvaluationStopped.
    """
    folder = None if checkpoint is None else Path(checkpoint)
    models: dict[tuple[Any, ...], Any] = {}

    def before_batch() -> None:
        if stop_requested():
            raise EvaluationStopped(
                f"evaluation of {folder or 'the model'} was asked to stop; start it again to go on"
            )

    def model_for(settings: BenchmarkSettings) -> Any:
        before_batch()
        options = json.dumps(settings.lm_options, sort_keys=True)
        kind: tuple[Any, ...] = (
            settings.lm,
            options,
            settings.batch_size,
            settings.device,
            settings.dtype,
        )
        if settings.lm == "hf-multimodal":  # it checks that prompts with images leave this much room
            kind = (*kind, settings.max_gen_toks)
        if kind not in models:
            models[kind] = load_model(folder, settings, before_batch)
        return models[kind]

    parsed = {name: BenchmarkSettings.from_mapping(benchmark) for name, benchmark in benchmarks.items()}
    digests = {name: model_digest(folder, settings) for name, settings in parsed.items()}
    records = {
        name: _Record(benchmark, outputs[name], seed, folder, digests[name], announce)
        for name, benchmark in benchmarks.items()
    }
    finished = {name: record.finished() for name, record in records.items()}
    for name, record in records.items():
        if finished[name] is None:
            record.check_images()
    return {name: finished[name] or record.complete(model_for) for name, record in records.items()}


class _Record:
    """What is and will be on disk of one benchmark of one checkpoint: `finished`, else `complete` it."""

    def __init__(
        self,
        benchmark: Mapping[str, Any],
        output: Path,
        seed: int,
        checkpoint: Path | None,
        model_digest: str,
        announce: Callable[[str], None],
    ) -> None:
        self._settings = BenchmarkSettings.from_mapping(benchmark)
        self._dataset = benchmark["dataset"]
        self._questions = load_questions(self._dataset, self._settings.split)
        self._files = files_of(self._dataset, self._settings.split, self._questions)
        self._output = output
        self._seed = seed
        self._checkpoint = checkpoint
        self._announce = announce
        self._settings_digest = settings_digest(benchmark)
        files_digest = self._files.digest if self._files else None
        self._digests = result_digests(self._settings.task, self._questions, files_digest, model_digest)
        self._origin = _origin(self._settings_digest, seed, self._digests)

    def finished(self) -> dict[str, Any] | None:
        """The results on disk if they are of this very evaluation."""
        try:
            results = read_results(self._output / "results.json")
        except FileNotFoundError:
            return None
        except RecordError as error:
            self._announce(f"{error}; evaluating again")
            return None
        origin = _origin(results["settings_digest"], results["seed"], results["digests"])
        return results if origin == self._origin else None

    def check_images(self) -> None:
        """Raise DataError when the model will read images that are not there."""
        if self._files and self._settings.lm != "replay":
            check_images(self._files.folder, self._questions)

    def complete(self, model_for: Callable[[BenchmarkSettings], Any]) -> dict[str, Any]:
        """Run the decodings that are missing and write the record; results.json comes last."""
        parts = {}
        for name, decoding in self._settings.decodings.items():
            part = self._read_part(name)
            parts[name] = part or self._sample_part(name, decoding, model_for(self._settings))
        results = self._results(parts)
        samples = pa.concat_tables([table for table, _ in parts.values()])
        write_samples(self._output / "samples.parquet", samples, self._origin)
        write_results(self._output / "results.json", results)
        shutil.rmtree(self._output / "decodings")
        return results

    def _part_path(self, name: str) -> Path:
        return self._output / "decodings" / f"{name}.parquet"

    def _journal_path(self, name: str) -> Path:
        return self._output / "decodings" / f"{name}.jsonl"

    def _read_part(self, name: str) -> tuple[pa.Table, float] | None:
        """A decoding's samples and seconds, if an earlier attempt of this very evaluation finished it."""
        try:
            samples, notes = read_samples(self._part_path(name))
        except FileNotFoundError:
            return None
        except RecordError as error:
            self._announce(f"{error}; evaluating again")
            return None
        seconds = float(notes.pop("seconds", "0"))
        return (samples, seconds) if notes == self._origin else None

    def _sample_part(self, name: str, decoding: DecodingSettings, model: Any) -> tuple[pa.Table, float]:
        settings = self._settings
        self._announce(
            f"{settings.name}: {len(self._questions)} questions x {decoding.samples} samples at temperature "
            f"{decoding.temperature} ({name})"
        )
        # It holds responses without verdicts, so another grader can go on from it too.
        generated = {key: value for key, value in self._origin.items() if key != "extractor"}
        journal = Journal(self._journal_path(name), {**generated, "decoding": name}, self._announce)
        earlier = journal.seconds
        if len(journal):
            self._announce(f"{settings.name}, {name}: going on after {len(journal)} finished batches")
        start = time.perf_counter()
        samples = sample_decoding(
            model,
            TASKS,
            settings,
            self._questions,
            name,
            decoding,
            derived_seed(self._seed, settings.name, name),
            self._files.folder if self._files else None,
            journal,
        )
        seconds = earlier + time.perf_counter() - start
        write_samples(self._part_path(name), samples, {**self._origin, "seconds": str(seconds)})
        journal.remove()
        return samples, seconds

    def _official(self, samples: pa.Table, n: int) -> dict[str, Any]:
        """A protocol's scores beyond accuracy, of decodings with one response per question."""
        asked = [question for question in self._questions if isinstance(question, BenchmarkQuestion)]
        settings = self._settings.dataset
        if not isinstance(settings, PublicSettings) or n != 1:
            return {}
        scores = load_protocol(settings.protocol).metrics(asked, samples["correct"].to_pylist())
        return {"official": scores} if scores else {}

    def _results(self, parts: Mapping[str, tuple[pa.Table, float]]) -> dict[str, Any]:
        settings = self._settings
        decodings = {
            name: decoding_results(samples, name, settings, self._seed, self._questions)
            for name, (samples, _) in parts.items()
        }
        for name, decoding in decodings.items():
            decoding |= self._official(parts[name][0], decoding["samples"])
            rate = decoding["truncation_rate"]
            if rate is not None and rate > settings.truncation_alarm:
                self._announce(
                    f"warning: {settings.name}, {name}: {rate:.1%} of the responses were cut at "
                    f"max_gen_toks = {settings.max_gen_toks}, so answers may be missing; raise it"
                )
        return {
            "schema": SCHEMA,
            "benchmark": settings.name,
            "settings_digest": self._settings_digest,
            "seed": self._seed,
            "n_questions": len(self._questions),
            "decodings": decodings,
            "digests": self._digests,
            **({"data": self._files.record()} if self._files else {}),
            "checkpoint": _in_run(self._checkpoint, self._output),
            "seconds": sum(seconds for _, seconds in parts.values()),
        }


def _origin(settings_digest: str, seed: int, digests: Mapping[str, str]) -> dict[str, str]:
    """What a record was made from; records with another origin are not taken for this evaluation's."""
    return {"settings_digest": settings_digest, "seed": str(seed), **digests}


def _in_run(checkpoint: Path | None, output: Path) -> str:
    """The checkpoint relative to the run directory if it is in it (`output` is `<run>/eval/<benchmark>`)."""
    if checkpoint is None:
        return ""
    run = output.resolve().parent.parent
    inside = os.path.commonpath([run, checkpoint.resolve()]) == str(run)
    return checkpoint.resolve().relative_to(run).as_posix() if inside else str(checkpoint)
