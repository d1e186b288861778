"""Errors of the disk while a policy is saved, as the system's own."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def system_errors(folder: Path) -> Iterator[None]:
    """Raise OSError where safetensors and tokenizers report one as an exception of their own, by its text."""
    try:
        yield
    except Exception as error:
        system_error = re.search(r"\(os error (\d+)\)", str(error))
        if system_error is None:
            raise
        number = int(system_error.group(1))
        raise OSError(number, os.strerror(number), str(folder)) from error
