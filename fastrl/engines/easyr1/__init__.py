"""Training on an unmodified EasyR1 (hiyouga/EasyR1, import name `verl`), which the user installs.

settings.py, translation.py and step_records.py need the standard library alone; the other modules import
`verl` and live in EasyR1's own environment.
"""
