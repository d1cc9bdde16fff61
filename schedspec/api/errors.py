"""What can go wrong, typed. Each error says what, where and what to do, and is shown without a Python traceback."""

from __future__ import annotations

from collections.abc import Sequence

from .kinds import Ref


class HarnessError(Exception):
    """Something that the author of a scenario, or who runs it, can repair. Its text is the whole story."""


class TemplateError(HarnessError):
    """A template that does not exist, misses a variable, or does not make YAML."""


class RejectedError(HarnessError):
    """The API server refused what was asked of it; its own words are in the text.

    `status` is HTTP's, `reason` the API's (`Invalid`, `Conflict`, `NotFound` …), `message` the server's own text,
    `fields` the paths that it blames.
    """

    def __init__(
        self, text: str, status: int = 0, reason: str = "", message: str = "", fields: Sequence[str] = ()
    ) -> None:
        super().__init__(text)
        self.status, self.reason, self.message, self.fields = status, reason, message, tuple(fields)


class ClusterUnreachableError(HarnessError):
    """The API server does not answer."""


class SchedulerDiedError(HarnessError):
    """The scheduler under test is no more. The text ends with the last lines of its log."""


class PolicyRefusedError(HarnessError):
    """The scheduler did not take a policy; `message` is what it said."""

    def __init__(self, text: str, message: str = "") -> None:
        super().__init__(text)
        self.message = message


class DirtyClusterError(HarnessError):
    """A scenario found what it should not have found, or left what it should not have left."""


class ForeignObjectError(HarnessError):
    """Something of the cluster's that is not ours stands in the way. It is left as it is; the text names it."""


class MissingRightsError(HarnessError):
    """The user of the kubeconfig may not do what a run does; the text names every right that is missing."""


class ClusterInUseError(HarnessError):
    """Another run has the cluster; the text says who, and since when."""


class Unmet(AssertionError):  # noqa: N818 - it reads as what it is
    """An expectation that was not met. `about` names the objects whose history explains it."""

    def __init__(self, expected: str, seen: str, about: Sequence[Ref] = (), waited: str = "") -> None:
        super().__init__(expected, seen)
        self.expected, self.seen, self.about, self.waited = expected, seen, tuple(about), waited

    def __str__(self) -> str:
        waited = f" ({self.waited})" if self.waited else ""
        return f"expected: {self.expected}{waited}\n    seen: {self.seen or 'nothing at all'}"
