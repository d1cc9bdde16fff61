"""Errors of the harness. Each message states what is wrong, where and what to do, and is shown without a traceback."""

from __future__ import annotations

from collections.abc import Sequence

from .kinds import Ref


class HarnessError(Exception):
    """An error that the author of a scenario or the user of a run can correct. Its text is complete."""


class TemplateError(HarnessError):
    """A template is missing, lacks a variable, or does not produce YAML."""


class RejectedError(HarnessError):
    """The API server refused a request. The text contains the server's message.

    Attributes:
        status: HTTP status.
        reason: Reason of the API (`Invalid`, `Conflict`, `NotFound` …).
        message: Message of the server.
        fields: Paths of the fields that the server names.
    """

    def __init__(
        self, text: str, status: int = 0, reason: str = "", message: str = "", fields: Sequence[str] = ()
    ) -> None:
        super().__init__(text)
        self.status, self.reason, self.message, self.fields = status, reason, message, tuple(fields)


class ClusterUnreachableError(HarnessError):
    """The API server does not answer."""


class SchedulerDiedError(HarnessError):
    """The scheduler under test died. The text ends with the last lines of its log."""


class PolicyRefusedError(HarnessError):
    """The scheduler rejected a policy; `message` is the scheduler's message."""

    def __init__(self, text: str, message: str = "") -> None:
        super().__init__(text)
        self.message = message


class DirtyClusterError(HarnessError):
    """A scenario began with or left objects that should not exist."""


class ForeignObjectError(HarnessError):
    """An object that is not ours prevents the run. The run does not change it; the text names it."""


class MissingRightsError(HarnessError):
    """The user of the kubeconfig lacks rights that a run needs; the text names all of them."""


class ClusterInUseError(HarnessError):
    """Another run uses the cluster; the text names that run and its start."""


class Unmet(AssertionError):  # noqa: N818 - the name states the outcome
    """An expectation was not met. `about` has the objects whose history explains it."""

    def __init__(self, expected: str, seen: str, about: Sequence[Ref] = (), waited: str = "") -> None:
        super().__init__(expected, seen)
        self.expected, self.seen, self.about, self.waited = expected, seen, tuple(about), waited

    def __str__(self) -> str:
        waited = f" ({self.waited})" if self.waited else ""
        return f"expected: {self.expected}{waited}\n    seen: {self.seen or 'nothing at all'}"
