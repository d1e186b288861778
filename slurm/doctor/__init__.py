"""What `fastrl doctor` looks at: this machine, the results folder, services, and a Slurm site."""
