"""Engines run a method's training loop: `reference` is embedded; others plug in outside ones."""
