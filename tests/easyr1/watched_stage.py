"""The train stage, writing down the images that its models are given: `python watched_stage.py RUN`."""

from __future__ import annotations

import sys
from typing import Any
from unittest.mock import patch

from experiments import stage, train_stage
from experiments.run_directory import RunDirectory
from experiments.stage_function import StageContext
from fastrl.engines.easyr1 import launch


def train(run: RunDirectory, config: dict[str, Any], context: StageContext) -> None:
    sys.path[:0] = launch.import_paths("cpu", config["engine"]["home"])
    from image_witness import watched_trainer

    with patch("fastrl.engines.easyr1.trainer.MethodTrainer", watched_trainer()):
        train_stage.train(run, config, context)


if __name__ == "__main__":
    sys.exit(stage.main([sys.argv[1], "train", "--function", "watched_stage:train"]))
