"""Recorded rollouts of any run, and what methods would have made of them, without training."""
