"""Figures and statistics of the commands that work on recorded rollouts, without a study."""
