"""A small real Slurm cluster on one machine: two virtual nodes, accounting, a partition that is preempted."""
