"""What training will cost in GPU-hours, as far as the paper's own times say it; "derived", never measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from experiments.commands.text_table import text_table

PROFILE = "h20_qwen2_5_vl_7b"
"""The seconds of a step that the estimates rest on: Table 8's."""

_BASELINE = "grpo"
NO_TIMES = "since the paper gives no times of the policy"


@dataclass(frozen=True)
class Estimate:
    """GPU-hours of one cell's training, None where there is no basis. basis: on what, or why not."""

    hours: float | None
    basis: str


def gpu_hours(config: Mapping[str, Any]) -> Estimate:
    """The GPU-hours of a resolved cell on EasyR1, on the paper's GPUs.

    Hours that the paper reports come first; then its speed over GRPO, or the trajectories that the method's
    settings fix, on the profile's seconds of a step and the steps of the cell. Evaluation is not counted.
    """
    gpus = config["engine"]["nodes"] * config["engine"]["gpus_per_node"]
    reported = _reported_hours(config)
    if reported is not None:
        return Estimate(reported * gpus, f"the paper's hours, on {gpus} GPUs")
    from experiments.offline.costs import named_profile

    profile = named_profile(PROFILE)
    own = config["model"]["name"], config["training"]["questions_per_step"]
    if own != (profile.model, profile.questions):
        return Estimate(None, NO_TIMES)
    steps = _steps(config)
    if steps is None:
        return Estimate(None, "since the size of the training set is not in its config")
    work = {"sampled": float(profile.rollouts), "kept": float(profile.rollouts)}
    speed = _reported_speed(config)
    settled = None if speed else _settled_work(config["method"])
    if speed is None and settled is None:
        return Estimate(None, _unsettled(config["method"]))
    step = _step_seconds(config["method"] if settled else None, settled or work) / (speed or 1.0)
    basis = f"Table 8's step, {speed:g}x as fast" if speed else "Table 8's stages, by trajectories"
    return Estimate(step * steps * profile.gpus / 3600, basis)


def hours_table(configs: Mapping[str, Mapping[str, Any]]) -> str:
    """GPU-hours by policy and training set as text; cells without a basis are counted and named beside.

    configs: the resolved cells by run id.
    """
    groups: dict[tuple[str, str], list[tuple[str, Estimate]]] = {}
    for config in configs.values():
        method = config["method"]
        tau = method["selector"].get("tau")
        name = method["label"] + (f" τ={tau:g}" if tau is not None and tau != 0.8 else "")
        group = groups.setdefault((config["model"]["label"], config["dataset"]["label"]), [])
        group.append((name, gpu_hours(config)))
    everything = [each for estimates in groups.values() for each in estimates]
    rows = [_row(model, dataset, estimates) for (model, dataset), estimates in groups.items()]
    rows.append(_row("all", "", everything))
    header = ["policy", "training set", "cells", "known", "GPU-hours"]
    lines = [
        "GPU-hours of training, derived: from the seconds of a step in the paper's Table 8, and the speeds",
        "and hours that it reports, all on H20; without evaluation.",
        text_table(header, rows),
        *(f"not known, {reason}: {', '.join(names)}" for reason, names in _unknown(groups).items()),
    ]
    return "\n".join(lines)


def _row(model: str, dataset: str, estimates: list[tuple[str, Estimate]]) -> list[str]:
    known = [each.hours for _, each in estimates if each.hours is not None]
    least = "" if len(known) == len(estimates) else "at least "
    hours = f"{least}{sum(known):,.0f}" if known else "unknown"
    return [model, dataset, str(len(estimates)), f"{len(known)} of {len(estimates)}", hours]


def _unknown(groups: Mapping[tuple[str, str], list[tuple[str, Estimate]]]) -> dict[str, dict[str, None]]:
    """Why there is no estimate, and of what: of methods, or of all that a policy trains on a set."""
    reasons: dict[str, dict[str, None]] = {}
    for (model, dataset), estimates in groups.items():
        without = [(name, each) for name, each in estimates if each.hours is None]
        for name, each in without:
            whole = len(without) == len(estimates)
            if whole:
                name = f"{model} on {dataset}"
            elif each.basis == NO_TIMES:
                name = f"{name} of {model}"
            reasons.setdefault(each.basis, {})[name] = None
    return reasons


def _steps(config: Mapping[str, Any]) -> int | None:
    """Training steps, from the size of the training split as the data set's config has it."""
    dataset, training = config["dataset"], config["training"]
    rows = dataset.get("splits", {}).get(dataset["train_split"], {}).get("rows")
    return training["epochs"] * (rows // training["questions_per_step"]) if rows else None


def _step_seconds(method: Mapping[str, Any] | None, work: Mapping[str, float]) -> float:
    """Seconds of a mean step; without a reference policy where the method's loss has no KL term."""
    from experiments.offline.costs import named_profile
    from fastrl.replay.predict import means_of_counts

    profile = named_profile(PROFILE)
    means = means_of_counts("", profile.questions, work["sampled"], work["kept"])
    stages = profile.costs.seconds(means.work)
    if method is not None and method["objective"]["kl_coef"] == 0:
        stages.pop("ref")
    return sum(stages.values())


def _settled_work(method: Mapping[str, Any]) -> dict[str, float] | None:
    """Trajectories a question that are sampled and kept, where the settings alone decide them."""
    rollouts, selector = method["rollouts"], method["selector"]
    if method["prompts"]["name"] != "all" or rollouts["name"] != "fixed":
        return None
    if selector["name"] == "all":
        return {"sampled": rollouts["n"], "kept": rollouts["n"]}
    if "pruning_rate" in selector:
        return {"sampled": rollouts["n"], "kept": rollouts["n"] * (1 - selector["pruning_rate"])}
    return None


def _unsettled(method: Mapping[str, Any]) -> str:
    if method["prompts"]["name"] != "all":
        return "since nothing says how many questions it skips or draws again"
    return "since nothing says how many trajectories it keeps"


def _reported_speed(config: Mapping[str, Any]) -> float | None:
    """Times as fast as GRPO, as the paper reports of this method, policy and training set."""
    if config["method"]["name"] == _BASELINE:
        return None
    tau = config["method"]["selector"].get("tau")
    if tau in (None, 0.8):
        return _reported(config, ("table1", "table2", "table5"), "speed", None)
    return _reported(config, ("table7",), "speed", tau)


def _reported_hours(config: Mapping[str, Any]) -> float | None:
    """Hours of training: those of Table 3, and of the third version's runs of low policy lag."""
    if config["model"]["name"] != "qwen2_5_vl_7b":
        return _reported(config, ("table3",), "training_time", None)
    if config["training"]["updates"] != 4:
        return None
    hours = _reported(config, ("low_policy_lag",), "training_time", None, method="fastrl")
    speed = _reported(config, ("low_policy_lag",), "speed", None, method="fastrl")
    if hours is None or speed is None:
        return None
    return {"fastrl": hours, _BASELINE: hours * speed}.get(config["method"]["name"])


def _reported(
    config: Mapping[str, Any], tables: tuple[str, ...], metric: str, tau: float | None, method: str = ""
) -> float | None:
    from analysis.paper import training_set_name
    from analysis.reported import reported_figures

    method = method or config["method"]["name"]
    tau_of_method = config["method"]["selector"].get("tau")
    if tau is None and tau_of_method not in (None, 0.8):
        return None
    for table in tables:
        for figure in reported_figures(table):
            wanted = (training_set_name(config["dataset"]["name"]), method, metric, tau)
            if (figure.training_set, figure.method, figure.metric, figure.tau) == wanted and (
                figure.model in ("", config["model"]["label"])
            ):
                return figure.value
    return None
