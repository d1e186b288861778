"""Train a cell in a process of its own: `python run_cell.py SPEC`, a JSON file of `training.Spec`."""

from __future__ import annotations

import json
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

from fastrl.engines.easyr1 import launch
from fastrl.engines.easyr1.translation import RunFiles, easyr1_config


def main(spec: dict[str, Any]) -> None:
    files = RunFiles(**spec["files"])
    steps = Path(spec["steps"])
    if spec["vanilla"]:
        vanilla(spec["config"], files, Path(spec["final"]))
        return

    def on_step(record: dict[str, Any]) -> None:
        with steps.open("a") as stream:
            stream.write(json.dumps(record) + "\n")

    def cut_back(step: int) -> None:
        lines = steps.read_text().splitlines() if steps.exists() else []
        kept = [line for line in lines if json.loads(line)["step"] <= step]
        steps.write_text("".join(line + "\n" for line in kept))

    def stop_requested() -> bool:
        return spec["stop_after"] is not None and len(steps.read_text().splitlines()) >= spec["stop_after"]

    rollouts = []
    with _watched(spec["config"]) if spec["watch_images"] else nullcontext():
        launch.train(
            config=spec["config"],
            run=spec["run"],
            files=files,
            final=Path(spec["final"]),
            on_start=lambda steps: print(f"{steps} steps"),
            on_step=on_step,
            on_rollouts=lambda step, record: rollouts.append(
                {"step": step, "kept": record.kept.tolist(), "reason": list(record.reason)}
            ),
            cut_back=cut_back,
            stop_requested=stop_requested,
            announce=print,
        )
    Path(spec["rollouts"]).write_text(json.dumps(rollouts))


def _watched(config: dict[str, Any]) -> AbstractContextManager[Any]:
    """Until it is left, what is trained writes down the images that its models are given."""
    sys.path[:0] = launch.import_paths("cpu", config["engine"]["home"])
    from image_witness import watched_trainer

    return patch("fastrl.engines.easyr1.trainer.MethodTrainer", watched_trainer())


def vanilla(config: dict[str, Any], files: RunFiles, final: Path) -> None:
    """The same cell by EasyR1's own trainer and loader, with nothing of ours but the CPU worker."""
    from fastrl.engines.easyr1.settings import easyr1_settings

    engine = easyr1_settings(config["engine"])
    paths = launch.import_paths("cpu", engine.home)
    sys.path[:0] = paths
    import ray
    from omegaconf import OmegaConf
    from verl.single_controller.ray import RayWorkerGroup
    from verl.trainer.config import PPOConfig
    from verl.trainer.data_loader import create_dataloader
    from verl.trainer.ray_trainer import RayPPOTrainer, ResourcePoolManager, Role
    from verl.utils.tokenizer import get_tokenizer
    from verl.workers.reward import AutoRewardManager

    from fastrl.engines.easyr1.checkpoint_checks import export_policy
    from fastrl.engines.easyr1.cpu_processor import cpu_processor
    from fastrl.engines.easyr1.cpu_worker import CpuWorker

    launch.start_ray("cpu", engine.data_parallel, paths)
    own = easyr1_config(config, files)
    own["trainer"]["logger"] = ["file"]
    ppo: Any = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(PPOConfig()), own))
    ppo.deep_post_init()
    tokenizer = get_tokenizer(files.policy, use_fast=True)
    processor = cpu_processor(files.policy, None)
    manager = ray.remote(AutoRewardManager)
    train, validation = create_dataloader(ppo.data, tokenizer, processor)
    trainer = RayPPOTrainer(
        config=ppo,
        tokenizer=tokenizer,
        processor=processor,
        train_dataloader=train,
        val_dataloader=validation,
        role_worker_mapping={Role.ActorRolloutRef: ray.remote(CpuWorker)},
        resource_pool_manager=ResourcePoolManager(
            resource_pool_spec={"global_pool": [engine.gpus_per_node]},
            mapping={Role.ActorRolloutRef: "global_pool"},
        ),
        ray_worker_group_cls=RayWorkerGroup,
        reward_fn=manager.remote(ppo.worker.reward, tokenizer),
        val_reward_fn=manager.remote(ppo.worker.reward, tokenizer),
    )
    trainer.init_workers()
    trainer.fit()
    ray.shutdown()
    export_policy(Path(files.checkpoints) / f"global_step_{trainer.global_step}" / "actor", final, None)


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()))
