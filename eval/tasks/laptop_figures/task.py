"""Functions of the lm-eval tasks laptop_figures, laptop_figures_ood and laptop_figures_shuffled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eval.datasets.images import LazyImage
from eval.tasks.laptop_geometry.task import load as load
from eval.tasks.laptop_geometry.task import process_results as process_results


def images(document: Mapping[str, Any]) -> list[LazyImage]:
    """lm-eval's hook: a document's images, opened when they are needed."""
    return [LazyImage(source) for source in document["images"]]
