"""Trace the steps of a cycle, for instance to measure their durations.

A tracer cannot change a decision. The core has no clock: it reports the begin and the end of a step, and uses no
result.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Literal, Protocol

Kind = Literal["action", "job", "plugin"]
"""An action's run, one job's attempt within an action, or the opening of a plugin."""


class Step(Protocol):
    """Called with the kind and the name of a step.

    The returned context is entered, and left when the step ends or fails.
    """

    def __call__(self, kind: Kind, name: str, /) -> AbstractContextManager[object]: ...


_NOTHING = nullcontext()


def no_trace(_kind: Kind, _name: str, /) -> AbstractContextManager[object]:
    """Trace nothing."""
    return _NOTHING
