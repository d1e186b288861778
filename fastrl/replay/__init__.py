"""Offline replay: what a method would have kept, sampled and cost on rollouts that another run recorded."""
