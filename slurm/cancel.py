"""Taking jobs out of the cluster, and remembering that they were: Slurm itself may keep no trace of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from slurm.client import call
from slurm.ledger import Submission, mark_cancelled, submissions
from slurm.queue import TaskId, read_queue

_AT_A_TIME = 200


def cancel(root: Path, chosen: Callable[[Submission, str, str], bool]) -> list[TaskId]:
    """Cancel the tasks in the queue that are chosen by submission, run id and stage; returns them.

    A stage that runs is asked to save first, as at a preemption. Raises SlurmError, and UserError
    while another process is cancelling.
    """
    found: dict[TaskId, Submission] = {}
    comments = read_queue(()).comments if any(submissions(root)) else {}
    for submission in submissions(root):
        for array in submission.arrays:
            job_id = array.job_id or comments.get(submission.comment(array))
            if job_id is None:
                continue
            for index, task in array.tasks.items():
                if chosen(submission, task.run_id, task.stage):
                    found[TaskId(job_id, index)] = submission
    states = read_queue(list(found)).states if found else {}
    active = [task for task in found if task in states and states[task].active]
    for submission in {found[task].folder: found[task] for task in active}.values():
        mark_cancelled(submission, [task for task in active if found[task].folder == submission.folder])
    for start in range(0, len(active), _AT_A_TIME):
        call(["scancel", *(str(task) for task in active[start : start + _AT_A_TIME])])
    return active
