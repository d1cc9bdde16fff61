"""The cache of recent values is bounded and expires."""

from __future__ import annotations

from schedspec.scheduler.kube.recent import Recent


def test_a_value_expires_and_then_takes_no_memory() -> None:
    now = 0.0
    recent: Recent[int, str] = Recent(10.0, 100, lambda: now)
    for second in range(1_000):
        now = float(second)
        recent.set(second, "x")
        assert len(recent) <= 10
    assert (recent.get(990), recent.get(989), 999 in recent, 989 in recent) == ("x", None, True, False)
    now += 10
    assert (recent.get(999), 999 in recent) == (None, False)


def test_a_value_that_is_set_again_expires_like_a_new_one() -> None:
    now = 0.0
    recent: Recent[str, int] = Recent(10.0, 100, lambda: now)
    recent.set("a", 1)
    now = 9.0
    recent.set("a", 2)
    recent.set("b", 3)
    now = 18.0
    recent.set("c", 4)
    assert (recent.get("a"), recent.get("b"), len(recent)) == (2, 3, 3)
    recent.pop("a")
    assert recent.get("a") is None


def test_beyond_the_maximum_the_oldest_values_are_dropped() -> None:
    recent: Recent[int, int] = Recent(10.0, 3, lambda: 0.0)
    for number in range(5):
        recent.set(number, number)
    assert [number for number in range(5) if number in recent] == [2, 3, 4]
