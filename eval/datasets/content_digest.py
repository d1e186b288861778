"""Digests that name a question by what it says, wherever it stands."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def content_digest(parts: Iterable[bytes]) -> str:
    """16 hex digits of the sha256 over the sha256 of each part, in order."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part).digest())
    return digest.hexdigest()[:16]
