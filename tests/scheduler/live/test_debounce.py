"""What is still being made is not complained of; what was never made is."""

from __future__ import annotations

from scheduler.live.debounce import SECONDS, Debounce

NOW = 1_800_000_000.0


def test_a_reason_is_told_once_it_has_stood_for_a_while() -> None:
    debounce = Debounce()
    assert not debounce.has_run_out("a", "1 of 3", NOW)
    assert debounce.due(NOW + 0.5) == []
    assert debounce.next() == NOW + SECONDS
    assert debounce.due(NOW + SECONDS) == ["a"]
    assert debounce.has_run_out("a", "1 of 3", NOW + SECONDS)
    assert (debounce.due(NOW + 60), debounce.next()) == ([], None)
    assert debounce.has_run_out("a", "1 of 3", NOW + 60)


def test_a_reason_that_changes_has_to_stand_anew() -> None:
    debounce = Debounce()
    debounce.has_run_out("a", "1 of 3", NOW)
    assert not debounce.has_run_out("a", "2 of 3", NOW + SECONDS)
    assert debounce.next() == NOW + 2 * SECONDS


def test_a_reason_that_no_longer_stands_is_told_by_nobody() -> None:
    debounce = Debounce()
    debounce.has_run_out("a", "1 of 3", NOW)
    debounce.forget("a")
    assert (debounce.due(NOW + 60), debounce.next()) == ([], None)
    assert not debounce.has_run_out("a", "1 of 3", NOW + 60)
