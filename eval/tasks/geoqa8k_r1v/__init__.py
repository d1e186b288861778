"""The lm-eval task of GeoQA8K-R1V."""
