"""Wait for conditions on the observed history: `eventually`, `consistently` and `never`.

Each new object version wakes the waiter and is checked. A check looks at one `View` and returns an `Outcome`; it never
waits and never calls the API server.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tenacity import RetryCallState, Retrying, retry_if_exception_type

from ..api import clock
from ..api.errors import Unmet
from ..api.kinds import Ref
from ..api.timeouts import REASON, WAKE
from .history import History, Replay, View


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a check. `expected` and `seen` are texts for users and never empty."""

    ok: bool
    expected: str
    seen: str
    about: tuple[Ref, ...] = ()
    """The objects whose history explains the outcome."""
    hopeless: float | None = None
    """Give up after this many seconds (before scaling) of hopeless outcomes; 0 if nothing can change the outcome."""
    already: str = ""
    """An irreversible fact, for instance `2 evictions`. Set only if `hopeless` is 0."""


Check = Callable[[View], Outcome]
Guard = Callable[[], None]
"""Raises when further waiting is useless: the scheduler died or a watch ended."""


_AT_ONCE = 0.1
"""Maximum seconds of a wait that is reported as failed at once."""


class _PendingError(Unmet):
    """The condition does not hold yet: check again after the next version."""


class _HopelessTimer:
    """Measures how long a wait has been hopeless."""

    def __init__(self, scale: float) -> None:
        self._scale, self._began = scale, clock.monotonic()
        self._since: float | None = None

    def check(self, outcome: Outcome, limit: float) -> None:
        """Raise if further waiting is useless.

        Raises:
            Unmet: the outcome was hopeless for too long.
        """
        if outcome.hopeless is None:
            self._since = None
            return
        now = clock.monotonic()
        self._since = now if self._since is None else self._since
        if now - self._since >= outcome.hopeless * self._scale:
            raise Unmet(outcome.expected, outcome.seen, outcome.about, self._waited(outcome, limit, now))

    def _waited(self, outcome: Outcome, limit: float, now: float) -> str:
        """Describe how long the wait took: `failed at once: 2 evictions already`."""
        waited = now - self._began
        if outcome.hopeless == 0.0:
            when = "at once" if waited < _AT_ONCE else f"after {waited:.2f} s"
            return f"failed {when}: {outcome.already} already" if outcome.already else f"failed {when}"
        return f"within {limit:g} s; given up after {waited:.2f} s"


class Expect:
    """The expectations of one scenario. `scale` multiplies every duration."""

    def __init__(
        self, history: History, scale: float = 1.0, guards: Sequence[Guard] = (), silent_for: float = 0.0
    ) -> None:
        """Wait on a history.

        Args:
            history: The scenario's history.
            scale: Factor for every duration.
            guards: Called before each check.
            silent_for: Maximum seconds of `decided`, if the scheduler does not publish every reason; else 0.
        """
        self._history, self._scale, self._guards = history, scale, tuple(guards)
        self._silent_for = silent_for
        self.waiting: Unmet | None = None
        """The awaited condition that did not hold at the last check, for the progress display."""
        self._deadline: float | None = None

    def set_deadline(self, seconds: float) -> None:
        """Let all later conditions come true within this time from now, instead of each within its own."""
        self._deadline = clock.monotonic() + seconds * self._scale

    def _limit(self, within: float) -> float:
        """Return the seconds that a condition has from now on."""
        return within * self._scale if self._deadline is None else max(0.0, self._deadline - clock.monotonic())

    def now(self, check: Check) -> None:
        """Check the last observed state.

        Raises:
            Unmet: the condition does not hold.
        """
        outcome = check(self._history.now())
        if not outcome.ok:
            raise Unmet(outcome.expected, outcome.seen, outcome.about)

    def eventually(self, check: Check, within: float) -> None:
        """Wait until the condition holds in the current or a later state, even for a moment.

        Raises:
            Unmet: the time is up, or the condition can never hold.
        """
        replay, limit, hopeless_timer = Replay(self._history), self._limit(within), _HopelessTimer(self._scale)

        def look() -> None:
            self._guard()
            for view in replay.states():
                outcome = check(view)
                if outcome.ok:
                    return
            hopeless_timer.check(outcome, limit)
            raise _PendingError(outcome.expected, outcome.seen, outcome.about, f"within {limit:g} s")

        self._wait(look, replay, limit)

    def decided(self, has_reason: Check) -> None:
        """Wait until the scheduler has published why a workload waits.

        If the scheduler does not publish every reason, return after at most `silent_for` seconds even without a reason.

        Raises:
            Unmet: no reason was published in time.
        """
        if not self._silent_for:
            return self.eventually(has_reason, within=REASON)
        with contextlib.suppress(Unmet):
            self.eventually(has_reason, within=self._silent_for)
        return None

    def consistently(self, check: Check, during: float) -> None:
        """Check that the condition holds now and in every state for `during` seconds.

        Raises:
            Unmet: the condition does not hold; with the first such state.
        """
        replay, span = Replay(self._history), during * self._scale
        began = clock.monotonic()

        def look() -> None:
            self._guard()
            for view in replay.states():
                outcome = check(view)
                if not outcome.ok:
                    after = max(0.0, view.at - began)
                    raise Unmet(
                        outcome.expected, outcome.seen, outcome.about, f"for {span:g} s; broken after {after:.2f} s"
                    )
            if clock.monotonic() - began < span:
                raise _PendingError(outcome.expected, "it still holds")

        self._wait(look, replay, span + 60.0)

    def settles(self, check: Check, within: float, during: float) -> None:
        """Wait until the condition begins to hold and then holds in every state for `during` seconds.

        Use this for counts that pass through other values: on the way to four running pods, two run.

        Raises:
            Unmet: the time is up, or the condition can never hold.
        """
        replay, limit, span = Replay(self._history), self._limit(within), during * self._scale
        hopeless_timer = _HopelessTimer(self._scale)
        since: float | None = None

        def look() -> None:
            nonlocal since
            self._guard()
            for view in replay.states():
                outcome = check(view)
                since = (since or clock.monotonic()) if outcome.ok else None
            if since is None or clock.monotonic() - since < span:
                hopeless_timer.check(outcome, limit)
                seen = outcome.seen if since is None else f"{outcome.seen}, but not for {span:g} s"
                raise _PendingError(outcome.expected, seen, outcome.about, f"within {limit:g} s")

        self._wait(look, replay, limit + span)

    def never(self, check: Check, during: float) -> None:
        """Check that the condition holds in no state from now on for `during` seconds.

        Raises:
            Unmet: the condition holds; with the first such state.
        """

        def inverted(view: View) -> Outcome:
            outcome = check(view)
            return Outcome(not outcome.ok, f"never: {outcome.expected}", outcome.seen, outcome.about)

        self.consistently(inverted, during)

    def _guard(self) -> None:
        for guard in self._guards:
            guard()

    def _wait(self, look: Callable[[], None], replay: Replay, limit: float) -> None:
        def note(state: RetryCallState) -> None:
            problem = state.outcome.exception() if state.outcome is not None else None
            self.waiting = problem if isinstance(problem, Unmet) else None

        self.waiting = None
        began = clock.monotonic()
        Retrying(
            retry=retry_if_exception_type(_PendingError),
            stop=lambda _: clock.monotonic() - began >= limit,
            sleep=lambda _: self._history.wait(replay.view.seq, WAKE),
            before_sleep=note,
            reraise=True,
        )(look)
        self.waiting = None
