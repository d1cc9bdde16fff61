"""Decide when to retry a write after a temporary error.

A worker tries each item once. An item that has to be retried waits without a worker, so that it blocks no other item.
A pause that the server requests applies to one flow only: one kind of write in one namespace.
"""

from __future__ import annotations

from dataclasses import dataclass

from .backoff import Backoff
from .errors import ApiError, KubeError, TooManyRequests, Unreachable

_TEMPORARY = (429, 500, 502, 503, 504)


@dataclass(frozen=True, slots=True)
class Again:
    """Retry after `after` seconds. With `holds_flow`, the other items of the flow wait equally long."""

    after: float
    holds_flow: bool = False


def again_after(error: KubeError, backoff: Backoff) -> Again | None:
    """Return when to retry a write; None if the error is permanent.

    The caller makes sure that the write may be repeated.
    """
    if isinstance(error, TooManyRequests) and error.retry_after is not None:
        return Again(error.retry_after, holds_flow=True)
    if isinstance(error, Unreachable) or (isinstance(error, ApiError) and error.status in _TEMPORARY):
        return Again(backoff.next())
    return None
