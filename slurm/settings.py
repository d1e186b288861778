"""The Slurm part of a cell's resolved config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.cluster_settings import ClusterSettings, SlurmSettings
from experiments.errors import UserError
from experiments.identity import canonical_json
from experiments.schema import build_settings


def settings_by_run(configs: Mapping[str, Mapping[str, Any]]) -> dict[str, SlurmSettings]:
    """The settings of each run id; one object for all that have the same. Raises as `slurm_settings` does."""
    known: dict[str, SlurmSettings] = {}
    found = {}
    for run_id, config in configs.items():
        text = canonical_json({"cluster": config["cluster"], "engine": config["engine"]})
        if text not in known:
            known[text] = slurm_settings(config)
        found[run_id] = known[text]
    return found


def slurm_settings(config: Mapping[str, Any]) -> SlurmSettings:
    """Raises UserError when the cluster has none, or its trainings have other nodes than the engine uses."""
    cluster, problems = build_settings(ClusterSettings, config["cluster"])
    if cluster is None:
        raise UserError(problems[0].what, "cluster", problems[0].way_out)
    if cluster.slurm is None:
        raise UserError(
            f"cluster={cluster.name} has no Slurm.",
            "cluster",
            "name your site's: cluster=NAME (a copy of conf/cluster/site_template.yaml), or rehearse on this "
            "machine: fastrl cluster up, then cluster=minislurm; fastrl run needs no Slurm",
        )
    engine, given = config["engine"], cluster.slurm.shapes.train.nodes
    used = engine.get("nodes", 1)
    if given != used:
        own = f"engine={engine['name']}" + (f" with engine.nodes={used}" if "nodes" in engine else "")
        raise UserError(
            f"A training has {given} nodes (cluster.slurm.shapes.train.nodes), and {own} uses {used}.",
            f"cluster={cluster.name}",
            "leave nodes as ${oc.select:engine.nodes,1} in the cluster's file, and set engine.nodes",
        )
    return cluster.slurm
