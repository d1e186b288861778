"""Preparing training sets: from hub files to parquet in EasyR1's schema, with stable ids and a data card."""

from __future__ import annotations

PREPARATIONS: dict[str, str] = {
    "geometry3k": "eval.preparation.geometry3k",
    "geoqa8k_r1v": "eval.preparation.geoqa8k_r1v",
    "laptop_figures": "eval.preparation.laptop_figures",
    "math": "eval.preparation.math",
    "os_atlas": "eval.preparation.os_atlas",
}
"""`source` of a training set's config -> the module whose `source_splits(settings, folder)` reads it."""
