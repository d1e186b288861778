"""Answers out of responses, which are untrusted text: extraction takes linear time and never evaluates it."""
