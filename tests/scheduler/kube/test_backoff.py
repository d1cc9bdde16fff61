"""Backoffs grow, differ between waiters, and are reset after a success."""

from __future__ import annotations

from itertools import pairwise

from schedspec.scheduler.kube.backoff import Backoff, spread

STEPS = (1.0, 2.0, 4.0, 8.0, 8.0, 8.0)


def test_each_pause_is_half_to_all_of_its_step_and_steps_double_to_a_maximum() -> None:
    for _ in range(200):
        backoff = Backoff(first=1.0, most=8.0)
        for step in STEPS:
            assert step / 2 <= backoff.next() <= step


def test_many_waiters_do_not_retry_together() -> None:
    pauses = sorted(Backoff(first=1.0, most=8.0).next() for _ in range(1000))
    assert pauses[0] < 0.55
    assert pauses[-1] > 0.95
    assert max(later - sooner for sooner, later in pairwise(pauses)) < 0.05


def test_a_reset_backoff_starts_with_the_first_step_again() -> None:
    backoff = Backoff(first=1.0, most=8.0)
    for _ in range(5):
        backoff.next()
    backoff.reset()
    assert backoff.next() <= 1.0


def test_spread_values_differ_and_are_within_the_bounds() -> None:
    moments = {spread(2.0, 3.0) for _ in range(100)}
    assert len(moments) > 90
    assert all(2.0 <= moment <= 3.0 for moment in moments)
