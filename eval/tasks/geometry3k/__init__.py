"""The lm-eval task of Geometry3K."""
