"""A feature shows an incident if enough of its runs do."""

from __future__ import annotations

import pytest

from schedspec.lab.reduce.confirm import Site, shows


@pytest.mark.parametrize(
    ("runs", "is_shown", "used"),
    [
        ([True, True, True], True, 2),
        ([True, False, True], True, 3),
        ([False, True, True], True, 3),
        ([False, False, True], False, 2),
        ([True, False, False], False, 3),
    ],
)
def test_no_run_starts_after_two_of_three_runs_have_decided(runs: list[bool], is_shown: bool, used: int) -> None:
    left = iter(runs)
    assert shows(Site("embedded", "volcano", 2, 3), lambda: next(left)) is is_shown
    assert len(runs) - len(list(left)) == used


def test_one_run_decides_for_a_deterministic_scheduler() -> None:
    left = iter([False, True])
    assert not shows(Site(), lambda: next(left))
    assert list(left) == [True]
