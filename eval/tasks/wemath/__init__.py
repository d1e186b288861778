"""The lm-eval task of We-Math."""
