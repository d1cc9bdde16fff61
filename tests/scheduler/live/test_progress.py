"""A process is healthy while it makes progress: due work finishes, and the event loop runs."""

from __future__ import annotations

import pytest

from schedspec.scheduler.live.progress import LONGEST, TICK, Expectation, Progress


class Process:
    """A process with one expectation and a simulated clock."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.is_due = True
        self.ended = 0
        self.progress = Progress(lambda: self.now)
        self.progress.expect(Expectation("nothing has ended", lambda: self.is_due, lambda: self.ended))

    def live(self, seconds: float) -> None:
        for _ in range(round(seconds / TICK)):
            self.now += TICK
            self.progress.tick()


def test_due_work_that_does_not_end_is_reported_after_30_seconds() -> None:
    process = Process()
    process.live(LONGEST - 1)
    assert process.progress.age == pytest.approx(LONGEST - 1, abs=TICK)
    assert process.progress.trouble == ""
    process.live(2)
    assert process.progress.trouble == "nothing has ended for 31 s"


def test_work_that_ends_now_and_then_makes_progress() -> None:
    process = Process()
    for _ in range(20):
        process.live(LONGEST - 5)
        process.ended += 1
        assert process.progress.trouble == ""
    process.live(TICK)
    assert process.progress.age == 0.0


def test_work_that_is_not_due_need_not_make_progress() -> None:
    process = Process()
    process.live(LONGEST - 1)
    process.is_due = False
    process.live(10 * LONGEST)
    assert (process.progress.age, process.progress.trouble) == (0.0, "")
    process.is_due = True
    process.live(LONGEST - 1)
    assert process.progress.trouble == ""


def test_a_hanging_event_loop_is_detected_from_outside() -> None:
    process = Process()
    process.live(1)
    process.now += 29
    assert (process.progress.age, process.progress.trouble) == (29.0, "")
    process.now += 2
    assert process.progress.trouble == "the event loop hangs for 31 s"


def test_time_in_which_the_process_was_frozen_does_not_count() -> None:
    process = Process()
    process.live(5)
    process.now += 3600
    process.progress.tick()
    assert process.progress.age < 10
    assert process.progress.trouble == ""
