"""Engines: what runs a method's training loop. `reference` is embedded (one process); others plug in outside
ones."""
