"""EasyR1's trainer with a method plugged in: it overrides hooks and calls super, `fit` is EasyR1's own.

`_balance_batch` is the one seam between generation and old log-probs. There the reward is awaited, advantages
are computed on the full groups by EasyR1's own estimator, the selector chooses and its choice is aligned.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import ray
import torch
from verl.protocol import DataProto
from verl.trainer.ray_trainer import RayPPOTrainer
from verl.utils.checkpoint.checkpoint_manager import remove_obsolete_ckpt

from fastrl.alignment import Alignment, AlignmentError, align, aligned_advantages
from fastrl.engines.easyr1.group_batch import GroupedBatch, grouped, plain, row_advantages, spread
from fastrl.engines.easyr1.kept_advantages import KEPT_ADVANTAGES, full_advantages
from fastrl.engines.easyr1.question_loader import QuestionLoader
from fastrl.engines.easyr1.reward_tap import ACCURACY, RewardTap
from fastrl.engines.easyr1.step_observation import rollout_record, sampling_metrics, selection_metrics
from fastrl.engines.easyr1.update_plan import UpdatePlan
from fastrl.engines.easyr1.worker_hooks import apply_update_plan, forget_images, rank_call
from fastrl.engines.reference.seeds import stream
from fastrl.method import Method, MethodState, initial_method_state, restore_method_state, save_method_state
from fastrl.rollout_record import RolloutRecord
from fastrl.rollouts import FloatArray
from fastrl.selectors.base import Selection

_KEPT = "kept_for_update"


class TrainingStopped(Exception):
    """Training was asked to stop after `step`, of which a checkpoint is saved."""

    def __init__(self, step: int) -> None:
        super().__init__(f"stopped after step {step}, as asked")
        self.step = step


@dataclass(frozen=True)
class TrainerSettings:
    """What the plug-in needs beside EasyR1's own config; named as in the settings.

    plan: how kept trajectories become optimizer steps. zero_constant_groups: see `EasyR1Settings`.
    record_rollouts_every: steps between hand-outs of trajectories (0: never).
    """

    seed: int
    plan: UpdatePlan
    zero_constant_groups: bool
    record_rollouts_every: int


class MethodTrainer(RayPPOTrainer):  # type: ignore[misc]
    """Trains `method` on EasyR1.

    stop_requested: asked between steps; training then saves and raises TrainingStopped.
    on_rollouts(step, record): called every `record_rollouts_every` steps.
    """

    def __init__(
        self,
        *,
        method: Method,
        settings: TrainerSettings,
        stop_requested: Callable[[], bool],
        on_rollouts: Callable[[int, RolloutRecord], None],
        **easyr1: Any,
    ) -> None:
        super().__init__(**easyr1)
        self.global_step: int
        self._method, self._settings = method, settings
        self._stop_requested, self._on_rollouts = stop_requested, on_rollouts
        self._tap = RewardTap(easyr1["reward_fn"])
        self.reward_fn = self._tap
        self._state = initial_method_state(method)
        self._save_due = self._validating = self._generating = False
        self._epochs_ended, self._saved_step, self._save_seconds = 0, 0, 0.0
        loader: QuestionLoader = self.train_dataloader
        loader.plan, loader.on_epoch = self._plan, self._epoch_ended

    def init_workers(self) -> None:
        """EasyR1's, with n of each call set in training, and work between steps done at a step's start."""
        super().init_workers()
        workers = self.actor_rollout_ref_wg
        generate, update = workers.generate_sequences, workers.update_actor
        prepare = workers.prepare_rollout_engine

        def generate_sequences(prompts: DataProto) -> DataProto:
            if self._generating:
                prompts.meta_info.setdefault("n", self.config.worker.rollout.n)
            return generate(prompts)

        def prepare_rollout_engine() -> Any:
            if not self._validating:
                self._between_steps()
            return prepare()

        def update_actor(batch: DataProto) -> DataProto:
            return update(self._kept_rows(batch))

        workers.generate_sequences = generate_sequences
        workers.prepare_rollout_engine = prepare_rollout_engine
        if self._method.prune == "after_logprob":
            workers.update_actor = update_actor

    def fit(self) -> None:
        """Train to the end. Raises TrainingStopped after a stop request, with everything saved."""
        super().fit()
        if self._save_due:
            self._save_now(self.global_step)

    # Checkpoints. EasyR1 saves inside a step, before that step is logged: a kill in between would lose the
    # step's record. Saving is put off to the next step's start, when the record is on disk.

    def _save_checkpoint(self) -> None:
        self._save_due = True

    def _between_steps(self) -> None:
        """At the start of step `global_step`, before anything of it has happened."""
        done = self.global_step - 1
        stopping = done > 0 and self._stop_requested()
        if (self._save_due or stopping) and done != self._saved_step:
            self._save_now(done)
        if stopping:
            raise TrainingStopped(done)

    def _save_now(self, step: int) -> None:
        start = time.perf_counter()
        extra, settings = self.train_dataloader.extra, self.config.trainer
        extra.update(method=save_method_state(self._method, self._state), epochs_ended=self._epochs_ended)
        current, limit = self.global_step, settings.save_limit
        # EasyR1 deletes old ones first, the newest too where another is the best: a kill then leaves none.
        self.global_step, settings.save_limit = step, -1
        try:
            super()._save_checkpoint()
        finally:
            self.global_step, settings.save_limit = current, limit
        remove_obsolete_ckpt(settings.save_checkpoint_path, step, self.best_global_step, limit)
        self._save_due, self._saved_step = False, step
        self._save_seconds += time.perf_counter() - start

    def _load_checkpoint(self) -> None:
        super()._load_checkpoint()
        self._saved_step = self.global_step
        extra = self.train_dataloader.extra
        if "method" in extra:
            self._state = restore_method_state(self._method, extra["method"])
            self._epochs_ended = extra["epochs_ended"]

    def _validate(self) -> dict[str, Any]:
        self._validating = True
        try:
            metrics: dict[str, Any] = super()._validate()
            return metrics
        finally:
            self._validating = False

    # Questions, and rollouts per question.

    def _plan(self, question_ids: Any, epoch: int, visit: int) -> Any:
        random = stream(self._settings.seed, "prompt filter", visit)
        return self._method.prompts.plan(self._state.prompts, question_ids, epoch, random)

    def _epoch_ended(self, epoch: int) -> None:
        self._epochs_ended += 1

    def _set_rollouts(self) -> None:
        """End the schedule's epochs that the loader has passed, and set n, the same for the whole step."""
        progress, rollouts = (self.global_step - 1) / self.training_steps, self._state.rollouts
        for _ in range(self._epochs_ended):
            rollouts = self._method.rollouts.end_epoch(rollouts, progress)
        self._epochs_ended = 0
        self._state = MethodState(self._state.prompts, rollouts)
        self.config.worker.rollout.n = self._method.rollouts.next_n(rollouts)

    def _make_batch_data(self, metrics: dict[str, Any]) -> DataProto:
        """EasyR1's, then what the filter observes of every group that was sampled, also of refused ones."""
        self.data_iterator.peek()  # may end an epoch of the data, and so of the schedule
        self._set_rollouts()
        skipped, self._step_epoch = self.train_dataloader.skipped, self.train_dataloader.epoch
        self._tap.start()
        self._generating = True
        try:
            batch: DataProto = super()._make_batch_data(metrics)
        finally:
            self._generating = False
        metrics["fastrl/n"] = self.config.worker.rollout.n
        metrics["fastrl/refilled"] = float(self.config.algorithm.online_filtering)
        metrics["fastrl/epoch"] = self._step_epoch
        metrics["fastrl/skipped"] = self.train_dataloader.skipped - skipped
        metrics["fastrl/save_seconds"], self._save_seconds = self._save_seconds, 0.0
        return batch

    def _balance_batch(
        self, batch: DataProto, metrics: dict[str, Any], logging_prefix: str = "global_seqlen"
    ) -> None:
        self._await_rewards(batch, metrics)
        start = time.perf_counter()
        self._observe_filter()
        groups = grouped(batch, batch.batch["token_level_scores"])
        advantages = full_advantages(batch, groups, self._settings.zero_constant_groups)
        metrics["fastrl/adv_seconds"] = time.perf_counter() - start
        start = time.perf_counter()
        full = row_advantages(advantages, batch.batch["response_mask"])
        chosen, selection = self._choose(groups, full)
        self._observe_schedule(groups, chosen)
        self._report(batch, groups, chosen, selection, full, metrics)
        rows = torch.from_numpy(groups.rows[chosen.kept])
        if selection.weight is not None or selection.advantage_override is not None:
            trained = aligned_advantages(selection, chosen, full)
            advantages[rows] = spread(trained, batch.batch["response_mask"][rows])
        batch.batch[KEPT_ADVANTAGES] = advantages
        prune_first = self._method.prune == "before_logprob"
        if prune_first:
            batch.reorder(rows.sort().values)
        else:
            batch.batch[_KEPT] = torch.zeros(len(batch), dtype=torch.bool).index_fill(0, rows, True)
            workers = self.actor_rollout_ref_wg
            workers.execute_with_func_generator(forget_images, rank_call(workers.world_size))
        super()._balance_batch(batch, metrics, logging_prefix)
        if prune_first:
            self._send_plan(batch)
        metrics["fastrl/select_seconds"] = time.perf_counter() - start

    def _await_rewards(self, batch: DataProto, metrics: dict[str, Any]) -> None:
        """Score the batch, unless EasyR1's online filtering has."""
        if "token_level_scores" not in batch.batch:
            scores, reward_metrics = ray.get(self._tap.compute_reward.remote(batch))
            batch.batch["token_level_scores"] = scores
            metrics.update({f"reward/{key}": value for key, value in plain(reward_metrics).items()})
        metrics["fastrl/reward_seconds"] = self._tap.seconds

    def _choose(self, groups: GroupedBatch, advantages: FloatArray) -> tuple[Alignment, Selection]:
        rollouts, divisor = groups.rollouts, self._settings.plan.divisor()
        random = stream(self._settings.seed, "selector", self.global_step)
        selection = self._method.selector.select(rollouts, advantages, random)
        try:
            return align(selection.kept, rollouts.offsets, selection.priority, divisor, "trim"), selection
        except AlignmentError as error:
            raise ValueError(f"step {self.global_step}: {error}; EasyR1 can't update on fewer") from error

    def _kept_rows(self, batch: DataProto) -> DataProto:
        """Pruning after log-probs: the rows that the update gets, balanced over the ranks anew."""
        rows = torch.nonzero(batch.batch[_KEPT]).squeeze(1)
        kept = batch.select()
        kept.batch = kept.batch.clone(recurse=False)
        kept.meta_info = dict(batch.meta_info)
        kept.reorder(rows)
        super()._balance_batch(kept, {}, "global_seqlen")
        kept.meta_info["global_token_num"] = kept.batch["attention_mask"].sum(-1).tolist()
        self._send_plan(kept)
        return kept

    def _send_plan(self, batch: DataProto) -> None:
        """Tell every rank how large its updates are."""
        plan = self._settings.plan.for_ranks(batch.batch["response_mask"])
        self.actor_rollout_ref_wg.execute_with_func_generator(apply_update_plan, plan)

    def _report(
        self,
        batch: DataProto,
        groups: GroupedBatch,
        chosen: Alignment,
        selection: Selection,
        advantages: FloatArray,
        metrics: dict[str, Any],
    ) -> None:
        """The step's figures from before pruning, and its trajectories where they are asked for."""
        prune_first, reference = self._method.prune == "before_logprob", self.use_reference_policy
        metrics.update(sampling_metrics(self._tap.draws))
        metrics.update(selection_metrics(groups.rollouts, chosen, selection, prune_first, reference))
        metrics["fastrl/updates"] = self._settings.plan.updates_of(len(chosen.kept))
        every = self._settings.record_rollouts_every
        if every and self.global_step % every == 0:
            record = rollout_record(batch, groups, chosen, selection, advantages, self.tokenizer)
            self._on_rollouts(self.global_step, record)

    # What the method observes.

    def _observe_filter(self) -> None:
        prompts = self._state.prompts
        for draw in self._tap.draws:
            groups = grouped(draw.batch, draw.scores)
            right = draw.batch.batch[ACCURACY].numpy()[groups.rows]
            prompts = self._method.prompts.observe(prompts, groups.rollouts, right, self._step_epoch)
        prompts = self._method.prompts.end_step(prompts, self._step_epoch)
        self._state = MethodState(prompts, self._state.rollouts)

    def _observe_schedule(self, groups: GroupedBatch, chosen: Alignment) -> None:
        rollouts = groups.rollouts
        per_group = np.bincount(rollouts.group_of[chosen.kept], minlength=rollouts.n_groups)
        observed = self._method.rollouts.observe(self._state.rollouts, per_group)
        self._state = MethodState(self._state.prompts, observed)
