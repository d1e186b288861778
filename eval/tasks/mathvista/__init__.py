"""The lm-eval task of MathVista."""
