"""Trace the steps of a cycle, for instance to measure their durations.

A tracer cannot change a decision. The core has no clock: it reports the start and the end of a step, and ignores what
the tracer returns.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Literal, Protocol

Kind = Literal["action", "job", "plugin"]
"""An action's run, one job's attempt within an action, or the opening of a plugin."""


class Step(Protocol):
    """Callback with the kind and the name of a step; the step runs within the returned context manager.

    An attempt has the name of its action, and the key of its job.
    """

    def __call__(self, kind: Kind, name: str, job: str = "", /) -> AbstractContextManager[object]: ...


_NOTHING = nullcontext()


def no_trace(_kind: Kind, _name: str, _job: str = "", /) -> AbstractContextManager[object]:
    """Trace nothing."""
    return _NOTHING
