"""The lm-eval tasks of MathVerse."""
