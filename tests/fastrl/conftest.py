"""Property tests here run without a deadline, so that a busy machine fails none of them."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("method", deadline=None, max_examples=60)
settings.load_profile("method")
