"""Convert times and durations between seconds (since 1970) and the formats of the API and of Go."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)


def timestamp(seconds: float) -> str:
    """Format a time as `metav1.Time`: whole seconds, UTC.

    >>> timestamp(0.9)
    '1970-01-01T00:00:00Z'
    """
    return _timestamp(int(seconds))


@lru_cache(maxsize=16)  # thousands of conditions have the same second
def _timestamp(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(seconds: float) -> str:
    """Format a time as `metav1.MicroTime`."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds(timestamp: str | None) -> float:
    """Convert an API timestamp to seconds since 1970; 0 for None.

    Raises:
        ValueError: the text is not a timestamp.
    """
    return datetime.fromisoformat(timestamp).timestamp() if timestamp else 0.0


def duration(text: str) -> float | None:
    """Convert a Go duration to seconds; None if the text is not a duration.

    >>> duration("1m30s"), duration("+.5h"), duration("soon")
    (90.0, 1800.0, None)
    """
    plain = text.strip().removeprefix("+")
    parts = _PART.findall(plain)
    if not parts or "".join(number + unit for number, unit in parts) != plain:
        return None
    return sum((float(number) * _UNITS[unit] for number, unit in parts), 0.0)


def render_duration(span: float) -> str:
    """Format whole seconds as Go does.

    >>> render_duration(90.0)
    '1m30s'
    """
    minutes, rest = divmod(round(span), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{rest}s" if hours else f"{minutes}m{rest}s" if minutes else f"{rest}s"
