"""The lm-eval task of AIME 2025."""
