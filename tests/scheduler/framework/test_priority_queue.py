"""A priority queue follows keys that grow while its items wait."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from schedspec.scheduler.framework.priority_queue import LazyPriorityQueue

KEY = some.integers(0, 5)
GROWTH = some.lists(some.tuples(some.integers(0, 7), KEY), max_size=3)


@given(
    some.lists(KEY, min_size=1, max_size=8),
    some.lists(some.tuples(GROWTH, some.booleans()), max_size=12),
    some.booleans(),
)
def test_the_first_item_has_the_smallest_key_even_after_keys_have_grown(
    keys: list[int], turns: list[tuple[list[tuple[int, int]], bool]], has_version: bool
) -> None:
    key, left, version = dict(enumerate(keys)), set(range(len(keys))), [0]
    queue = LazyPriorityQueue(
        lambda item: (key[item], item),
        sorted(left),
        version=(lambda: version[0]) if has_version else None,
    )
    for growth, is_taken in turns:
        for item, more in growth:
            key[item] = key.get(item, 0) + more
            version[0] += 1
        if not left:
            break
        smallest = min(left, key=lambda item: (key[item], item))
        assert queue.first() == smallest
        if is_taken:
            assert queue.pop() == smallest
            left.remove(smallest)
    assert len(queue) == len(left)
