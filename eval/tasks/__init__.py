"""lm-eval tasks, a folder each: `<benchmark>/<benchmark>.yaml` and its functions in `task.py`.

They run in the evaluate stage and in lm-eval's own command line (`lm_eval --include_path eval/tasks`).
"""
