"""What can go wrong between us and the API server, as types.

The one rule: every error says what was asked and what to make of the answer; callers catch the type, never a status
number.
"""

# ruff: noqa: N818 - the words of the API, not of Python
from __future__ import annotations

import time
from email.utils import parsedate_to_datetime

import msgspec

LONGEST_PAUSE = 30.0
"""Seconds; a server that asks for a longer pause is asked again after this one."""


class KubeError(Exception):
    """Base of all. ``request`` is what was asked (``POST /api/v1/…``)."""

    def __init__(self, request: str, message: str) -> None:
        super().__init__(f"{request}: {message}")
        self.request = request
        self.message = message


class ConfigError(KubeError):
    """The connection cannot even be tried: kubeconfig, context, certificate or token is missing or wrong."""

    def __init__(self, source: str, message: str) -> None:
        super().__init__(source, message)


class Unreachable(KubeError):
    """No answer: refused, cut off or too late. ``sent``: the request may have been carried out all the same."""

    def __init__(self, request: str, message: str, *, sent: bool) -> None:
        super().__init__(request, message)
        self.sent = sent


class UnreadableAnswer(Unreachable):
    """The server said yes, and what it said beside cannot be read: the request may have been carried out or not."""

    def __init__(self, request: str, error: Exception) -> None:
        super().__init__(request, f"the answer cannot be read: {error}", sent=True)


class LeadershipLost(KubeError):
    """We may no longer write: another replica may lead by now. Nothing was sent."""


class ApiError(KubeError):
    """The API server said no. ``reason`` is its machine-readable word (``AlreadyExists``), or empty."""

    def __init__(self, request: str, status: int, reason: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(request, f"{status} {reason or 'error'}: {message}")
        self.status = status
        self.reason = reason
        self.retry_after = retry_after
        """Seconds that the server asks us to wait, if it does; at most LONGEST_PAUSE."""


class Unauthorized(ApiError):
    """401: the credentials are not (or no longer) good."""


class Forbidden(ApiError):
    """403: no permission, or an admission policy refuses."""


class NotFound(ApiError):
    """404: no such object, or no such resource (a CRD that is not served)."""


class Conflict(ApiError):
    """409: somebody was there first (resourceVersion, uid precondition, a pod already bound); also a patch for an
    object that has a successor of the same name, to which the API server says 422.
    """


class AlreadyExists(Conflict):
    """409 on a create: an object of this name exists."""


class Gone(ApiError):
    """410: the resourceVersion or the continue token has expired; list again."""


class Invalid(ApiError):
    """422: the object breaks its schema or a validation rule."""


class TooManyRequests(ApiError):
    """429: slow down for ``retry_after`` seconds, or (evictions) a disruption budget is used up."""


class ServerError(ApiError):
    """5xx: the server's fault; the request may be repeated later."""


_BY_STATUS: dict[int, type[ApiError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}


class Cause(msgspec.Struct):
    """One thing that is wrong with a request."""

    field: str = ""


class Details(msgspec.Struct):
    causes: list[Cause] | None = None


class Status(msgspec.Struct):
    """The ``Status`` object of Kubernetes, as far as we read it."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: Details | None = None

    @property
    def is_about_another(self) -> bool:
        """Whether a patch named a uid that is not the object's: the API server calls that an invalid change of it."""
        causes = self.details.causes if self.details is not None else None
        return any(cause.field == "metadata.uid" for cause in causes or ())


_decoder = msgspec.json.Decoder(Status)


def error_of(request: str, status: int, body: bytes, retry_after: str | None = None) -> ApiError:
    """The error that an answer means. Its body may be a Status object or any text (a CRD not served yet answers in
    plain text).
    """
    try:
        told = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        told = Status(message=body[:500].decode("utf-8", "replace").strip())
    return _error(request, status, told, _seconds_of(retry_after or ""))


def _seconds_of(retry_after: str) -> float | None:
    """What a Retry-After header asks for, a number of seconds or a date (RFC 9110, 10.2.3); None where it is neither.

    >>> _seconds_of("3"), _seconds_of("3600"), _seconds_of("Wed, 21 Oct 2015 07:28:00 GMT"), _seconds_of("soon")
    (3.0, 30.0, 0.0, None)
    """
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), LONGEST_PAUSE)
    try:
        seconds = parsedate_to_datetime(text).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None
    return min(max(seconds, 0.0), LONGEST_PAUSE)


def error_of_status(request: str, body: bytes) -> ApiError:
    """The error that a Status object in a watch means. Raises as the decoder does where it is none, or has no code."""
    told = _decoder.decode(body)
    if not 400 <= told.code <= 599:
        raise msgspec.ValidationError(f"an error with the code {told.code}")
    return _error(request, told.code, told)


def _error(request: str, status: int, told: Status, wait: float | None = None) -> ApiError:
    kind: type[ApiError] = ServerError if status >= 500 else _BY_STATUS.get(status, ApiError)
    if kind is Conflict and told.reason == "AlreadyExists":
        kind = AlreadyExists
    if kind is Invalid and told.is_about_another:
        kind = Conflict
    return kind(request, status, told.reason, told.message or "no message", wait)
