"""A reason for waiting is reported only if it holds for longer than the delay."""

from __future__ import annotations

from schedspec.scheduler.live.status_builder import SECONDS, Debounce

NOW = 1_800_000_000.0


def test_a_reason_is_due_once_it_has_held_for_the_delay() -> None:
    debounce = Debounce()
    assert not debounce.has_run_out("a", "1 of 3", NOW)
    assert debounce.due(NOW + 0.5) == []
    assert debounce.next() == NOW + SECONDS
    assert debounce.due(NOW + SECONDS) == ["a"]
    assert debounce.has_run_out("a", "1 of 3", NOW + SECONDS)
    assert (debounce.due(NOW + 60), debounce.next()) == ([], None)
    assert debounce.has_run_out("a", "1 of 3", NOW + 60)


def test_a_changed_reason_starts_a_new_delay() -> None:
    debounce = Debounce()
    debounce.has_run_out("a", "1 of 3", NOW)
    assert not debounce.has_run_out("a", "2 of 3", NOW + SECONDS)
    assert debounce.next() == NOW + 2 * SECONDS


def test_a_forgotten_reason_is_never_due() -> None:
    debounce = Debounce()
    debounce.has_run_out("a", "1 of 3", NOW)
    debounce.forget("a")
    assert (debounce.due(NOW + 60), debounce.next()) == ([], None)
    assert not debounce.has_run_out("a", "1 of 3", NOW + 60)
