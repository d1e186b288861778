"""A cache of so many bytes."""

from __future__ import annotations

from fastrl.engines.reference.bounded_cache import BoundedCache


def test_what_was_used_longest_ago_is_forgotten_first() -> None:
    cache: BoundedCache[str] = BoundedCache(10)
    for key in "abc":
        cache.put(key, key.upper(), 4)
        assert cache.get("a") == "A"
    assert cache.get("b") is None and cache.get("c") == "C"


def test_a_value_in_place_of_another_takes_its_own_room_alone() -> None:
    cache: BoundedCache[str] = BoundedCache(10)
    for value in ("old", "new"):
        cache.put("a", value, 6)
    cache.put("b", "other", 4)
    assert cache.get("a") == "new" and cache.get("b") == "other"


def test_a_value_larger_than_the_bound_is_not_kept() -> None:
    cache: BoundedCache[str] = BoundedCache(10)
    cache.put("a", "A", 11)
    assert len(cache) == 0
