"""The lm-eval task of MATH-500."""
