"""What is still being made is not complained of; what was never made is."""

from __future__ import annotations

from scheduler.live.debounce import SECONDS, Patience

NOW = 1_800_000_000.0


def test_a_reason_is_told_once_it_has_stood_for_a_while() -> None:
    patience = Patience()
    assert not patience.has_run_out("a", "1 of 3", NOW)
    assert patience.due(NOW + 0.5) == []
    assert patience.next() == NOW + SECONDS
    assert patience.due(NOW + SECONDS) == ["a"]
    assert patience.has_run_out("a", "1 of 3", NOW + SECONDS)
    assert (patience.due(NOW + 60), patience.next()) == ([], None)
    assert patience.has_run_out("a", "1 of 3", NOW + 60)


def test_a_reason_that_changes_has_to_stand_anew() -> None:
    patience = Patience()
    patience.has_run_out("a", "1 of 3", NOW)
    assert not patience.has_run_out("a", "2 of 3", NOW + SECONDS)
    assert patience.next() == NOW + 2 * SECONDS


def test_a_reason_that_no_longer_stands_is_told_by_nobody() -> None:
    patience = Patience()
    patience.has_run_out("a", "1 of 3", NOW)
    patience.forget("a")
    assert (patience.due(NOW + 60), patience.next()) == ([], None)
    assert not patience.has_run_out("a", "1 of 3", NOW + 60)
