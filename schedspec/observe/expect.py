"""What must come, what must hold, what must not be: judged on every state that the cluster showed, woken by change.

A check looks at one `View` and returns an `Outcome`; it never waits and never asks the API server.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_delay

from ..api.errors import Unmet
from ..api.kinds import Ref
from ..api.timeouts import SAID, WAKE
from .history import History, Replay, View


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a check found. `expected` and `seen` are for people and never empty."""

    ok: bool
    expected: str
    seen: str
    about: tuple[Ref, ...] = ()
    """The objects whose history explains it."""
    hopeless: float | None = None
    """Seconds (to be scaled) after which to give up while it stays like this: 0 where nothing can undo it."""


Check = Callable[[View], Outcome]
Guard = Callable[[], None]
"""Raises when waiting has become senseless: the scheduler is dead, a watch has ended."""


class _NotYetError(Unmet):
    """Worth another look."""


class _Hope:
    """How long a wait has been hopeless."""

    def __init__(self, scale: float) -> None:
        self._scale, self._began = scale, time.monotonic()
        self._since: float | None = None

    def check(self, outcome: Outcome, limit: float) -> None:
        """Raises Unmet where waiting on is senseless."""
        if outcome.hopeless is None:
            self._since = None
            return
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        if now - self._since >= outcome.hopeless * self._scale:
            waited = f"within {limit:g} s; given up after {now - self._began:.2f} s"
            raise Unmet(outcome.expected, outcome.seen, outcome.about, waited)


class Expect:
    """The expectations of one scenario. `scale` stretches every time that is given to it."""

    def __init__(
        self, history: History, scale: float = 1.0, guards: Sequence[Guard] = (), silent_for: float = 0.0
    ) -> None:
        """`silent_for`: see `decided`; 0 where the scheduler always says why work waits."""
        self._history, self._scale, self._guards = history, scale, tuple(guards)
        self._silent_for = silent_for
        self.waiting: Unmet | None = None
        """What is being waited for, and was not there at the last look: for who watches the run."""

    def now(self, check: Check) -> None:
        """It holds in the last state seen. Raises Unmet."""
        outcome = check(self._history.now())
        if not outcome.ok:
            raise Unmet(outcome.expected, outcome.seen, outcome.about)

    def eventually(self, check: Check, within: float) -> None:
        """It holds now or in some later state, be it for a moment, within that time. Raises Unmet, as soon as it never
        will.
        """
        replay, limit, hope = Replay(self._history), within * self._scale, _Hope(self._scale)

        def look() -> None:
            self._guard()
            for view in replay.states():
                outcome = check(view)
                if outcome.ok:
                    return
            hope.check(outcome, limit)
            raise _NotYetError(outcome.expected, outcome.seen, outcome.about, f"within {limit:g} s")

        self._wait(look, replay, limit)

    def decided(self, told_why: Check) -> None:
        """The scheduler has decided against some work: it has published why.

        Of one that does not publish every reason so many seconds of silence are enough. Raises Unmet.
        """
        if not self._silent_for:
            return self.eventually(told_why, within=SAID)
        with contextlib.suppress(Unmet):
            self.eventually(told_why, within=self._silent_for)
        return None

    def consistently(self, check: Check, during: float) -> None:
        """It holds now and in every state for that long. Raises Unmet with the first state in which it does not."""
        replay, span = Replay(self._history), during * self._scale
        began = time.monotonic()

        def look() -> None:
            self._guard()
            for view in replay.states():
                outcome = check(view)
                if not outcome.ok:
                    after = max(0.0, view.at - began)
                    raise Unmet(
                        outcome.expected, outcome.seen, outcome.about, f"for {span:g} s; broken after {after:.2f} s"
                    )
            if time.monotonic() - began < span:
                raise _NotYetError(outcome.expected, "it still holds")

        self._wait(look, replay, span + 60.0)

    def settles(self, check: Check, within: float, during: float) -> None:
        """Within that time it begins to hold and then does, in every state, for so long. Raises Unmet, as soon as it
        never will.

        For a number that is passed on the way to another one: two of four pods run before four do.
        """
        replay, limit, span = Replay(self._history), within * self._scale, during * self._scale
        hope = _Hope(self._scale)
        since: float | None = None

        def look() -> None:
            nonlocal since
            self._guard()
            for view in replay.states():
                outcome = check(view)
                since = (since or time.monotonic()) if outcome.ok else None
            if since is None or time.monotonic() - since < span:
                hope.check(outcome, limit)
                seen = outcome.seen if since is None else f"{outcome.seen}, but not for {span:g} s"
                raise _NotYetError(outcome.expected, seen, outcome.about, f"within {limit:g} s")

        self._wait(look, replay, limit + span)

    def never(self, check: Check, during: float) -> None:
        """It holds in no state from now on, for that long. Raises Unmet with the first state in which it does."""

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
        Retrying(
            retry=retry_if_exception_type(_NotYetError),
            stop=stop_after_delay(limit),
            sleep=lambda _: self._history.wait(replay.view.seq, WAKE),
            before_sleep=note,
            reraise=True,
        )(look)
        self.waiting = None
