"""Which step a cycle is at, for who wants to know: how long each took, say.

The one rule: whoever is told cannot change what is decided. The core knows no clock; it says when a step begins and
ends, and asks for nothing back.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Literal, Protocol

Kind = Literal["action", "job", "plugin"]
"""An action's whole run; one job's attempt within it; a plugin's opening, in which it computes what it answers by."""


class Step(Protocol):
    """Called with what begins: what it gives back is entered then, and left when the step ends or fails."""

    def __call__(self, kind: Kind, name: str, /) -> AbstractContextManager[object]: ...


_NOTHING = nullcontext()


def no_trace(_kind: Kind, _name: str, /) -> AbstractContextManager[object]:
    """Where nobody wants to know."""
    return _NOTHING
