"""The lm-eval task of MATH."""
