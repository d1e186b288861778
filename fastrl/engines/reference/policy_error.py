"""What is raised for policies and prompts that cannot be used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


class PolicyError(RuntimeError):
    """A policy folder that cannot be used, or a prompt that does not fit the policy."""


@contextmanager
def known_architecture(model: Any) -> Iterator[None]:
    """Turns what an image-text model's code raises, called as this engine calls it, into a PolicyError.

    Models differ in what they take; one that takes something else fails anywhere in its code. A lack of
    memory is left as it is.
    """
    try:
        yield
    except (PolicyError, torch.OutOfMemoryError):
        raise
    except (AttributeError, LookupError, NotImplementedError, RuntimeError, TypeError, ValueError) as error:
        raise PolicyError(
            f"{type(model).__name__} cannot be read here ({type(error).__name__}: {error}); this engine does "
            "not know this architecture, train it with engine=easyr1"
        ) from error
