"""Reward files for EasyR1, one per reward: `worker.reward.reward_function=<file>:compute_score`."""
