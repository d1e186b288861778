"""What the lm-eval tasks of public benchmarks share: data, images and verdicts by a benchmark's protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eval.datasets import load_questions
from eval.lm_eval_task import Verdict, documents, sample_metrics
from eval.protocols.base import BenchmarkProtocol, BenchmarkQuestion
from fastrl.rollouts import Question

if TYPE_CHECKING:
    from datasets import Dataset

    from eval.datasets.images import LazyImage


@dataclass(frozen=True)
class ProtocolTask:
    """The functions that a task file names. Answers count by the protocol's current rule."""

    protocol: BenchmarkProtocol

    def load(
        self,
        dataset: Mapping[str, Any],
        splits: Sequence[str],
        root: str | None = None,
        rows: int | None = None,
        **_: Any,
    ) -> dict[str, Dataset]:
        """The documents of splits of a data-set config; lm-eval adds keywords of its own.

        root and rows are for lm-eval's command line: `--metadata '{"root": "FOLDER"}'` takes a local folder
        instead of the hub, with `"rows": N` one of so many records. Raises DataError naming missing files.
        """
        from eval.datasets.public import check_images, data_folder

        local = {**dataset, "root": dataset["root"] if root is None else root}
        if rows is not None:
            local["splits"] = {
                name: {**files, "rows": rows, "sha256": {}} for name, files in dataset["splits"].items()
            }
        found = {}
        for split in splits:
            questions = load_questions(local, split)
            folder = data_folder(local, split)
            check_images(folder, questions)
            found[split] = documents(questions, folder)
        return found

    def images(self, document: Mapping[str, Any]) -> list[LazyImage]:
        """lm-eval's hook: the images of a document, in the order of `<image>` in its prompt."""
        from eval.datasets.images import LazyImage

        return [LazyImage(source) for source in document["images"]]

    def grade(self, question: Question, response: str) -> Verdict:
        """The verdict on one response. Raises TypeError for a question without the official record."""
        from eval.grading.open_answers import shared_grader

        if not isinstance(question, BenchmarkQuestion):
            raise TypeError(f"question {question.id!r} is of no public benchmark")
        extracted = self.protocol.extract(question, response)
        rule = self.protocol.rules[0]
        (correct,) = self.protocol.grade([question], [extracted], rule, shared_grader().equal)
        return Verdict(extracted, correct=correct is True, formatted=None, undecided=correct is None)

    def process_results(self, document: Mapping[str, Any], results: Sequence[Any]) -> dict[str, Any]:
        """lm-eval's hook: the metrics of one document's samples."""
        return sample_metrics(document, results, self.grade)
