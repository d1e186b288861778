"""Benchmarks: data sets, answer extraction, rewards, lm-eval tasks, pass@k, and the evaluate stage's core."""
