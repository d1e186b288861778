"""Renderers: one file a format, from a table (or the whole report) to text."""
