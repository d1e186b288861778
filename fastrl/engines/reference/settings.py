"""Settings of the embedded engine. None has a default; values are in `experiments/conf/{training,engine}`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

UpdateMode = Literal["fixed", "mini_batch"]
OnBadReward = Literal["error", "drop"]


@dataclass(frozen=True)
class TrainingSettings:
    """What is trained, and for how long.

    epochs: the run has `epochs * (questions // questions_per_step)` steps. questions_per_step: groups a step,
    without what a selector plans in addition (see `fastrl.selectors.base.PlansQuestions`).
    max_prompt_tokens: a longer prompt is an error. max_response_tokens: the generation budget.
    temperature: of sampling, and of the log-probs that the loss is made of. learning_rate, betas,
    weight_decay: AdamW's. max_grad_norm: gradients are scaled down to this norm. warmup_steps: training steps
    over which the learning rate rises linearly. updates: optimizer steps per training step. update_mode:
    "fixed" splits the kept trajectories evenly into `updates`; "mini_batch" cuts them into mini-batches of
    `questions_per_step / updates` questions' worth of full groups, so pruning lowers the number of updates.
    validate_every: steps between validations, also before the first and after the last step (0: never).
    validation_samples: responses per validation question. checkpoint_every: steps between checkpoints (0:
    only at the end and on a stop request). keep_checkpoints: how many of the newest stay.
    record_rollouts_every: steps between hand-outs of sampled trajectories (0: never). on_bad_reward: a reward
    that is not finite is an "error", or its trajectory is left out and counted ("drop").
    """

    epochs: int
    questions_per_step: int
    max_prompt_tokens: int
    max_response_tokens: int
    temperature: float
    learning_rate: float
    betas: tuple[float, float]
    weight_decay: float
    max_grad_norm: float
    warmup_steps: int
    updates: int
    update_mode: UpdateMode
    validate_every: int
    validation_samples: int
    checkpoint_every: int
    keep_checkpoints: int
    record_rollouts_every: int
    on_bad_reward: OnBadReward

    def __post_init__(self) -> None:
        _check_at_least(
            self,
            1,
            "epochs questions_per_step max_prompt_tokens max_response_tokens updates validation_samples "
            "keep_checkpoints",
        )
        _check_at_least(
            self, 0, "weight_decay warmup_steps validate_every checkpoint_every record_rollouts_every"
        )
        _check_above_zero(self, "temperature learning_rate max_grad_norm")
        _check_choice(self, "update_mode", get_args(UpdateMode))
        _check_choice(self, "on_bad_reward", get_args(OnBadReward))
        if len(self.betas) != 2 or not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"training.betas={self.betas!r}: two numbers in [0, 1) are needed")
        if self.update_mode == "mini_batch" and self.questions_per_step % self.updates:
            raise ValueError(
                f"training.questions_per_step={self.questions_per_step} does not divide into "
                f"training.updates={self.updates} mini-batches; use a divisor of it, or update_mode: fixed"
            )


@dataclass(frozen=True)
class EngineSettings:
    """Where and in which portions the work is done; only `dtype` changes more than rounding.

    device: a torch device. dtype: of the weights ("float32", "bfloat16"). threads: of torch on the CPU.
    micro_batch: trajectories per forward and backward pass. logprob_batch: trajectories per pass for old and
    reference log-probs. sample_batch: responses decoded together. data_parallel: ranks that an update must
    divide over; this engine has one, other values are for studying alignment.
    """

    device: str
    dtype: Literal["float32", "bfloat16"]
    threads: int
    micro_batch: int
    logprob_batch: int
    sample_batch: int
    data_parallel: int

    def __post_init__(self) -> None:
        _check_at_least(self, 1, "threads micro_batch logprob_batch sample_batch data_parallel")
        _check_choice(self, "dtype", ("float32", "bfloat16"))


@dataclass(frozen=True)
class VisionEngineSettings(EngineSettings):
    """The same for image-text policies.

    freeze_vision_tower: the tower, and what leads from it to the text model, is not trained; what it makes of
    a question's images is then computed once. image_cache_mb: megabytes of memory that read images may take,
    and as many for the features of a tower that does not change (the reference's never does).
    """

    freeze_vision_tower: bool
    image_cache_mb: int

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_at_least(self, 0, "image_cache_mb")


REFERENCE_ENGINES: dict[str, type[EngineSettings]] = {
    "reference": EngineSettings,
    "reference_vision": VisionEngineSettings,
}
"""The engine configs of this engine, by name; two, so that a text run has no settings for images."""


def training_settings(config: dict[str, Any]) -> TrainingSettings:
    """From the `training` part of a configuration; ValueError on unknown or missing keys."""
    values = _checked_keys(TrainingSettings, "training", config)
    return TrainingSettings(**{**values, "betas": tuple(values["betas"])})


def engine_settings(config: dict[str, Any]) -> EngineSettings:
    """From the `engine` part of a configuration; ValueError on an unknown name, unknown or missing keys."""
    name = config["name"]
    if name not in REFERENCE_ENGINES:
        raise ValueError(f"engine.name={name!r}: one of {', '.join(REFERENCE_ENGINES)}")
    kind = REFERENCE_ENGINES[name]
    return kind(**_checked_keys(kind, "engine", config))


def _checked_keys(kind: type[Any], where: str, config: dict[str, Any]) -> dict[str, Any]:
    """The fields of `config`; its `name` (of the file it came from) is left out."""
    values = {key: value for key, value in config.items() if key != "name"}
    known = {field.name for field in fields(kind)}
    if unknown := sorted(values.keys() - known):
        raise ValueError(f"{where}.{unknown[0]}: unknown key; known are {', '.join(sorted(known))}")
    if missing := sorted(known - values.keys()):
        raise ValueError(
            f"{where}.{missing[0]} is missing; settings have no defaults, set it in {where}/*.yaml"
        )
    return values


def _check_at_least(settings: Any, minimum: int, names: str) -> None:
    for name in names.split():
        if not getattr(settings, name) >= minimum:
            raise ValueError(
                f"{_place(settings)}.{name}={getattr(settings, name)} must be at least {minimum}"
            )


def _check_above_zero(settings: Any, names: str) -> None:
    for name in names.split():
        if not getattr(settings, name) > 0:
            raise ValueError(f"{_place(settings)}.{name}={getattr(settings, name)} must be above 0")


def _check_choice(settings: Any, name: str, choices: tuple[str, ...]) -> None:
    if getattr(settings, name) not in choices:
        raise ValueError(
            f"{_place(settings)}.{name}={getattr(settings, name)!r}: one of {', '.join(choices)}"
        )


def _place(settings: Any) -> str:
    return "training" if isinstance(settings, TrainingSettings) else "engine"
