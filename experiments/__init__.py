"""Experiments: configuration, studies, run directories, stages, and the command line."""
