"""Geometry3K in the schema that EasyR1 trains on: images, a problem with <image>, an open answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from eval.protocols.base import BenchmarkQuestion
from eval.protocols.open_grading import OpenAnswers
from eval.protocols.record_fields import THINK_THEN_BOX, content_ids, images_field, text_field


class Geometry3k(OpenAnswers):
    """The protocol of the test split (601)."""

    def questions(self, records: Iterable[Mapping[str, Any]]) -> list[BenchmarkQuestion]:
        """Fields `problem`, one `<image>` in it for each of `images`, and `answer`; `id`, or `question_id`
        in a prepared set, if any."""
        records = list(records)
        names = [f"Geometry3K record number {number}" for number in range(1, len(records) + 1)]
        problems = [text_field(record, "problem", name) for record, name in zip(records, names, strict=True)]
        images = [images_field(record, "images", name) for record, name in zip(records, names, strict=True)]
        for problem, found, name in zip(problems, images, names, strict=True):
            if problem.count("<image>") != len(found):
                raise ValueError(
                    f"{name}: {len(found)} images for {problem.count('<image>')} <image> in its problem"
                )
        # Many problems read "Find x.": the images tell them apart.
        made = content_ids(
            "geometry3k", [(problem, *found) for problem, found in zip(problems, images, strict=True)]
        )
        return [
            BenchmarkQuestion(
                id=str(record.get("id", record.get("question_id", made[index]))),
                prompt=f"{problems[index]}\n{THINK_THEN_BOX}",
                answer=text_field(record, "answer", names[index]),
                images=images[index],
                labels={},
                details={},
            )
            for index, record in enumerate(records)
        ]
