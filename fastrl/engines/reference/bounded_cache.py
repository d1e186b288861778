"""A cache that forgets what was used longest ago once its values take more than so many bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class BoundedCache(Generic[Value]):
    """Values by key. One that alone exceeds the bound is not kept."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._used = 0
        self._values: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable) -> Value | None:
        """The value, now the last one to be forgotten; None when there is none."""
        entry = self._values.get(key)
        if entry is None:
            return None
        self._values.move_to_end(key)
        return entry[0]

    def put(self, key: Hashable, value: Value, size: int) -> None:
        """Keep a value of `size` bytes, in place of the one that the key may have."""
        _, replaced = self._values.pop(key, (value, 0))
        self._values[key] = (value, size)
        self._used += size - replaced
        while self._used > self._max_bytes:
            _, (_, freed) = self._values.popitem(last=False)
            self._used -= freed
