"""Recorded trajectories: `rollouts/step_<N>.parquet`, one row each. Needs pyarrow; training does not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from experiments.atomic_files import draft_path, write_error
from fastrl.rollout_record import RolloutRecord


def write_rollouts(folder: Path, step: int, record: RolloutRecord) -> None:
    """Write a step's trajectories by write-and-rename. Raises WriteError when the disk is full.

    Columns: step, group (index in the step), question_id, response, tokens (ids), reward, accuracy, format,
    advantage (of the full group), kept, reason (why it was not kept, else "").
    """
    rollouts = record.rollouts
    group = rollouts.group_of
    tokens = pa.ListArray.from_arrays(
        pa.array(rollouts.token_offsets.astype(np.int32)), pa.array(rollouts.tokens.astype(np.int32))
    )
    columns = {
        "step": np.full(rollouts.n_trajectories, step, dtype=np.int32),
        "group": group.astype(np.int32),
        "question_id": [rollouts.question_ids[index] for index in group],
        "response": list(record.responses),
        "tokens": tokens,
        "reward": rollouts.rewards,
        "accuracy": record.accuracy,
        "format": record.format,
        "advantage": record.advantages,
        "kept": record.kept,
        "reason": list(record.reason),
    }
    path = folder / f"step_{step}.parquet"
    draft = draft_path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), draft)
        draft.replace(path)
    except OSError as error:
        raise write_error(path, error) from error
    finally:
        draft.unlink(missing_ok=True)
