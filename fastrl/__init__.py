"""FastRL: trajectory pruning (MDAP) and adaptive rollout sampling (ARS) for GRPO-style training.

The core needs numpy alone. torch is needed by `fastrl.objectives` and `fastrl.engines` only.
"""

__version__ = "0.1.0"
