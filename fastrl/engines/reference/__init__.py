"""The embedded engine: a whole RL loop for any Hugging Face causal language model, in one process.

Needs torch, transformers and numpy; runs on a CPU or one GPU. Entry point:
`fastrl.engines.reference.loop.train`.
"""
