"""Running a study on this machine: worker processes, and a live view of its cells."""
