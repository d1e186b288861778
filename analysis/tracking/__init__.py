"""Tracking: from run directories into MLflow, by one process, after the fact.

`sync` brings the runs of a study in and `ui` opens MLflow's pages on them. mlflow is imported inside
functions, so that nothing is paid for it until it is needed.
"""
