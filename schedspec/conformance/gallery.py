"""Issues of other schedulers that scenarios of features/gallery reproduce, by their tags. The list is closed."""

from __future__ import annotations

from typing import Final, NamedTuple


class Issue(NamedTuple):
    """An issue of another scheduler."""

    url: str
    affected: str
    """The scheduler, with the version if the scenario was seen to fail with it."""
    repaired: str = ""
    """The version that fixes the issue; empty if no release does."""


_KUEUE: Final = "https://github.com/kubernetes-sigs/kueue/issues"
_VOLCANO: Final = "https://github.com/volcano-sh/volcano/issues"

ISSUES: Final[dict[str, Issue]] = {
    "kueue-issue-13479": Issue(f"{_KUEUE}/13479", "kueue", repaired="v0.19.1"),
    "kueue-issue-13607": Issue(f"{_KUEUE}/13607", "kueue", repaired="v0.19.1"),
    "kueue-issue-13662": Issue(f"{_KUEUE}/13662", "kueue", repaired="v0.19.2"),
    "volcano-issue-3673": Issue(f"{_VOLCANO}/3673", "volcano", repaired="v1.15.0"),
    "volcano-issue-4679": Issue(f"{_VOLCANO}/4679", "volcano v1.14.1"),
    "volcano-issue-4947": Issue(f"{_VOLCANO}/4947", "volcano v1.14.1"),
    "volcano-issue-5805": Issue(f"{_VOLCANO}/5805", "volcano v1.14.1"),
    "volcano-issue-5896": Issue(f"{_VOLCANO}/5896", "volcano v1.14.1"),
    "volcano-issue-5994": Issue(f"{_VOLCANO}/5994", "volcano"),
}
