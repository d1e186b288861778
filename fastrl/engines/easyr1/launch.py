"""Start EasyR1 on a resolved cell: its own parts put together around `MethodTrainer`, in this process.

EasyR1 runs its trainer in a Ray actor. Here it is the driver, so that a signal to the stage reaches it.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import ray
from omegaconf import OmegaConf

from fastrl.engines.easyr1.checkpoint_checks import claim, export_policy, keep_own_logs, resumable_step
from fastrl.engines.easyr1.settings import easyr1_settings
from fastrl.engines.easyr1.translation import RunFiles, averages_sequences, easyr1_config
from fastrl.engines.easyr1.update_plan import UpdatePlan, rank_multiple
from fastrl.engines.reference.loop import TrainOutcome
from fastrl.method import build_method
from fastrl.rollout_record import RolloutRecord

STAND_INS = Path(__file__).parent / "cpu_stand_ins"
_PROJECT = Path(__file__).parents[3]
_ENVIRONMENT = {
    "TOKENIZERS_PARALLELISM": "true",
    "NCCL_DEBUG": "WARN",
    "VLLM_LOGGING_LEVEL": "WARN",
    "TORCH_NCCL_AVOID_RECORD_STREAMS": "1",
    "CUDA_DEVICE_MAX_CONNECTIONS": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
}


def train(
    *,
    config: Mapping[str, Any],
    run: str,
    files: RunFiles,
    final: Path,
    on_start: Callable[[int], None],
    on_step: Callable[[dict[str, Any]], None],
    on_rollouts: Callable[[int, RolloutRecord], None],
    cut_back: Callable[[int], None],
    stop_requested: Callable[[], bool],
    announce: Callable[[str], None],
) -> TrainOutcome:
    """Train a cell to the end, from its newest checkpoint, or until a stop request, with everything saved.

    run: the run's id, which its checkpoint folder is marked with. final: where the trained policy goes, a
    Hugging Face folder. on_start(steps): called once before training with the steps that EasyR1 makes, fewer
    than the questions would fill where it leaves out some that are too long. on_step: gets each step's
    record, before the step's checkpoint. cut_back(step): called before training, to drop records after the
    checkpoint.
    Raises ImportError when there is no EasyR1 here, CheckpointProblem.
    """
    engine = easyr1_settings(config["engine"])
    claim(Path(files.checkpoints), run)
    step = resumable_step(Path(files.checkpoints), engine.data_parallel)
    cut_back(step)
    announce(f"EasyR1 goes on after step {step}")
    paths = import_paths(engine.worker, engine.home)
    sys.path[:0] = [path for path in paths if path not in sys.path]
    if importlib.util.find_spec("verl") is None:
        raise ImportError(
            f"there is no EasyR1 in {sys.executable}: set engine.home to a checkout of it, or run the stage "
            "in the environment that has it (docs/easyr1.md)"
        )
    from fastrl.engines.easyr1.trainer import TrainingStopped

    start_ray(engine.worker, engine.data_parallel, paths)
    try:
        trainer = _trainer(config, files, step, on_step, on_rollouts, stop_requested)
        steps = int(trainer.training_steps)
        on_start(steps)
        if step < steps:  # else only the export is left
            keep_own_logs(Path(files.checkpoints))
            trainer.init_workers()
            trainer.fit()
    except TrainingStopped as stopped:
        announce(str(stopped))
        return TrainOutcome(stopped.step, finished=False)
    finally:
        ray.shutdown()
    actor = Path(files.checkpoints) / f"global_step_{steps}" / "actor"
    export_policy(actor, final, Path(engine.home) if engine.home else None)
    return TrainOutcome(steps, finished=True)


def import_paths(worker: str, home: str | None) -> list[str]:
    """What Python must search for this project, EasyR1 and, on CPUs, stand-ins for vLLM."""
    return [*([str(STAND_INS)] if worker == "cpu" else []), *([home] if home else []), str(_PROJECT)]


def start_ray(worker: str, ranks: int, paths: list[str]) -> None:
    """Start Ray here, or join the one that `RAY_ADDRESS` names; its workers import from `paths`.

    Ray takes SIGTERM over, to exit at once; the handler from before is put back, so that the training saves.
    """
    environment = {**_ENVIRONMENT, "PYTHONPATH": ":".join(paths)}
    own: dict[str, Any] = {}
    if worker == "cpu":
        environment |= {"OMP_NUM_THREADS": "1", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
        # Ray counts these "GPUs" only; EasyR1 asks for one a rank. Each actor takes a CPU slot as well.
        own = {"num_cpus": ranks + 6, "num_gpus": ranks, "include_dashboard": False}
    if os.environ.get("RAY_ADDRESS"):
        own = {}  # a Ray that runs already has its own CPUs and GPUs, and refuses to be told others
    before = signal.getsignal(signal.SIGTERM)
    ray.init(runtime_env={"env_vars": environment}, **own)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, before)


def _trainer(
    config: Mapping[str, Any],
    files: RunFiles,
    resumed_step: int,
    on_step: Callable[[dict[str, Any]], None],
    on_rollouts: Callable[[int, RolloutRecord], None],
    stop_requested: Callable[[], bool],
) -> Any:
    from verl.single_controller.ray import RayWorkerGroup
    from verl.trainer.config import PPOConfig
    from verl.trainer.data_loader import create_dataloader
    from verl.trainer.ray_trainer import ResourcePoolManager, Role
    from verl.utils.tokenizer import get_tokenizer
    from verl.workers.reward import AutoRewardManager

    from fastrl.engines.easyr1.question_loader import QuestionLoader
    from fastrl.engines.easyr1.step_logger import register_step_logger
    from fastrl.engines.easyr1.trainer import MethodTrainer, TrainerSettings

    engine, training = easyr1_settings(config["engine"]), config["training"]
    merged = OmegaConf.merge(
        OmegaConf.structured(PPOConfig()), OmegaConf.create(easyr1_config(config, files))
    )
    ppo: Any = OmegaConf.to_object(merged)
    ppo.deep_post_init()
    if resumed_step:  # a validation then would be one more, and draw from the random state just restored
        ppo.trainer.val_before_train = False
    template = ppo.data.override_chat_template
    policy = ppo.worker.actor.model.model_path
    tokenizer = get_tokenizer(policy, override_chat_template=template, use_fast=True)
    processor = _processor(engine.worker, policy, template)
    worker = ray.remote(_worker_class(engine.worker))
    pool = ResourcePoolManager(
        resource_pool_spec={"global_pool": [engine.gpus_per_node] * engine.nodes},
        mapping={Role.ActorRolloutRef: "global_pool"},
    )
    manager = ray.remote(AutoRewardManager).options(num_cpus=ppo.worker.reward.num_cpus)
    train_loader, validation_loader = create_dataloader(ppo.data, tokenizer, processor)
    mode, updates = training["update_mode"], training["updates"]
    settings = TrainerSettings(
        seed=config["seed"],
        plan=UpdatePlan(
            mode=mode,
            updates=updates,
            mini_batch=training["questions_per_step"] // updates * ppo.worker.rollout.n,
            ranks=engine.data_parallel,
            rank_multiple=rank_multiple(engine, mode, updates),
            exact_sequence_mean=engine.sequence_mean == "exact" and averages_sequences(config),
        ),
        zero_constant_groups=engine.constant_groups == "zero",
        record_rollouts_every=training["record_rollouts_every"],
    )
    trainer = MethodTrainer(
        method=build_method(config["method"]),
        settings=settings,
        stop_requested=stop_requested,
        on_rollouts=on_rollouts,
        config=ppo,
        tokenizer=tokenizer,
        processor=processor,
        train_dataloader=QuestionLoader(
            train_loader, ppo.data.mini_rollout_batch_size or ppo.data.rollout_batch_size
        ),
        val_dataloader=validation_loader,
        role_worker_mapping={Role.ActorRolloutRef: worker},
        resource_pool_manager=pool,
        ray_worker_group_cls=RayWorkerGroup,
        reward_fn=manager.remote(ppo.worker.reward, tokenizer),
        val_reward_fn=manager.remote(ppo.worker.reward, tokenizer),
    )
    register_step_logger(on_step, trainer.training_steps)
    return trainer


def _processor(kind: str, policy: str, chat_template: str | None) -> Any:
    if kind == "cpu":
        from fastrl.engines.easyr1.cpu_processor import cpu_processor

        return cpu_processor(policy, chat_template)
    from verl.utils.tokenizer import get_processor

    return get_processor(policy, override_chat_template=chat_template, use_fast=True)


def _worker_class(kind: str) -> type[Any]:
    if kind == "cpu":
        from fastrl.engines.easyr1.cpu_worker import CpuWorker

        return CpuWorker
    from verl.workers.fsdp_workers import FSDPWorker

    worker: type[Any] = FSDPWorker
    return worker
