"""Answers out of responses. Responses are untrusted text: extraction takes linear time and never evaluates them."""
