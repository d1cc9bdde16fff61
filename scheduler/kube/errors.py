"""Errors of requests to the API server.

Each error names the request and the meaning of the answer. Callers catch types, never status numbers.
"""

# ruff: noqa: N818 - the words of the API, not of Python
from __future__ import annotations

import time
from email.utils import parsedate_to_datetime

import msgspec

LONGEST_PAUSE = 30.0
"""Maximum pause in seconds that we accept from the server."""


class KubeError(Exception):
    """Base of all errors. `request` is the request line (`POST /api/v1/…`)."""

    def __init__(self, request: str, message: str) -> None:
        super().__init__(f"{request}: {message}")
        self.request = request
        self.message = message


class ConfigError(KubeError):
    """The API server cannot be contacted: kubeconfig, context, certificate or token is missing or wrong."""

    def __init__(self, source: str, message: str) -> None:
        super().__init__(source, message)


class Unreachable(KubeError):
    """No answer: refused, cut off or too late. With `sent`, the server may have carried out the request."""

    def __init__(self, request: str, message: str, *, sent: bool) -> None:
        super().__init__(request, message)
        self.sent = sent


class UnreadableAnswer(Unreachable):
    """The server reported success, but its answer cannot be read. The request may have been carried out."""

    def __init__(self, request: str, error: Exception) -> None:
        super().__init__(request, f"the answer cannot be read: {error}", sent=True)


class LeadershipLost(KubeError):
    """This replica may no longer write, because another replica may lead. Nothing was sent."""


class ApiError(KubeError):
    """The API server refused the request. `reason` is the machine-readable reason (`AlreadyExists`), or empty."""

    def __init__(self, request: str, status: int, reason: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(request, f"{status} {reason or 'error'}: {message}")
        self.status = status
        self.reason = reason
        self.retry_after = retry_after
        """The pause in seconds that the server requests, at most LONGEST_PAUSE; None if it requests no pause."""


class Unauthorized(ApiError):
    """401: the credentials are not valid, or no longer valid."""


class Forbidden(ApiError):
    """403: a permission is missing, or an admission policy refuses."""


class NotFound(ApiError):
    """404: the object does not exist, or its kind is not served (no CRD)."""


class Conflict(ApiError):
    """409: the object changed before (resourceVersion, uid precondition, a pod already bound).

    A patch for an object that was replaced by a successor of the same name is a Conflict as well, although the API
    server answers 422.
    """


class AlreadyExists(Conflict):
    """409 on a create: an object with this name exists."""


class Gone(ApiError):
    """410: the resourceVersion or the continue token has expired. List again."""


class Invalid(ApiError):
    """422: the object violates its schema or a validation rule."""


class TooManyRequests(ApiError):
    """429: wait for `retry_after` seconds, or (evictions) a disruption budget is used up."""


class UndeclaredField(ApiError):
    """500 on a server-side apply: the API server's definition of the kind lacks a field of the body."""


class ServerError(ApiError):
    """5xx: the server failed. The request may be repeated later."""


_UNDECLARED = "field not declared in schema"

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
    """One invalid field of a request."""

    field: str = ""


class Details(msgspec.Struct):
    causes: list[Cause] | None = None


class Status(msgspec.Struct):
    """The part of the `Status` object of Kubernetes that we read."""

    message: str = ""
    reason: str = ""
    code: int = 0
    details: Details | None = None

    @property
    def names_another_uid(self) -> bool:
        """Whether a patch named another uid than the object's. The API server calls that an invalid change."""
        causes = self.details.causes if self.details is not None else None
        return any(cause.field == "metadata.uid" for cause in causes or ())


_decoder = msgspec.json.Decoder(Status)


def error_of(request: str, status: int, body: bytes, retry_after: str | None = None) -> ApiError:
    """Return the error for an answer with a status of 400 or more.

    The body is a Status object or any text: for a kind that is not served, the answer is plain text.
    """
    try:
        answer = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        answer = Status(message=body[:500].decode("utf-8", "replace").strip())
    return _error(request, status, answer, _seconds_of(retry_after or ""))


def _seconds_of(retry_after: str) -> float | None:
    """Return the seconds of a Retry-After header (a number, or a date as in RFC 9110, 10.2.3); None if it has neither.

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
    """Return the error for a Status object in a watch.

    Raises:
        msgspec.DecodeError: The bytes are not a Status, or its code is not an error.
    """
    answer = _decoder.decode(body)
    if not 400 <= answer.code <= 599:
        raise msgspec.ValidationError(f"an error with the code {answer.code}")
    return _error(request, answer.code, answer)


def _error(request: str, status: int, answer: Status, wait: float | None = None) -> ApiError:
    kind: type[ApiError] = ServerError if status >= 500 else _BY_STATUS.get(status, ApiError)
    if kind is ServerError and _UNDECLARED in answer.message:
        kind = UndeclaredField
    if kind is Conflict and answer.reason == "AlreadyExists":
        kind = AlreadyExists
    if kind is Invalid and answer.names_another_uid:
        kind = Conflict
    return kind(request, status, answer.reason, answer.message or "no message", wait)
