"""The cache of recent values is bounded and expires."""

from __future__ import annotations

from scheduler.kube.recent import Recent


def test_what_is_remembered_goes_after_its_time_and_takes_no_room_then() -> None:
    now = 0.0
    recent: Recent[int, str] = Recent(10.0, 100, lambda: now)
    for second in range(1_000):
        now = float(second)
        recent.set(second, "x")
        assert len(recent) <= 10
    assert (recent.get(990), recent.get(989), 999 in recent, 989 in recent) == ("x", None, True, False)
    now += 10
    assert (recent.get(999), 999 in recent) == (None, False)


def test_what_is_set_again_is_as_young_as_new() -> None:
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


def test_of_more_than_there_is_room_for_the_last_ones_stay() -> None:
    recent: Recent[int, int] = Recent(10.0, 3, lambda: 0.0)
    for number in range(5):
        recent.set(number, number)
    assert [number for number in range(5) if number in recent] == [2, 3, 4]
