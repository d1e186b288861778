"""From a study's plan to jobs on a Slurm cluster."""
