"""The lm-eval tasks of MathVision."""
