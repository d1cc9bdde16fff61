"""When to try again what has no verdict yet.

The one rule: whoever works on something tries it once; what is to be tried again waits where it holds nobody up. A
pause that the server asks for is one of the flow, the kind of write in its namespace, and of nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

from .backoff import Backoff
from .errors import ApiError, KubeError, TooManyRequests, Unreachable

_NO_VERDICT = (429, 500, 502, 503, 504)


@dataclass(frozen=True, slots=True)
class Again:
    """To be tried again after so many seconds; ``holds_flow``: and all the others of its flow with it."""

    after: float
    holds_flow: bool = False


def again_after(error: KubeError, backoff: Backoff) -> Again | None:
    """When to repeat a write that failed (and that may be repeated); None where the error is a verdict."""
    if isinstance(error, TooManyRequests) and error.retry_after is not None:
        return Again(error.retry_after, holds_flow=True)
    if isinstance(error, Unreachable) or (isinstance(error, ApiError) and error.status in _NO_VERDICT):
        return Again(backoff.next())
    return None
