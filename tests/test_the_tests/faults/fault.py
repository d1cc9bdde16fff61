"""Define the type of a fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.test_the_tests.specimens import Specimen

TAG = "fault-"
EVERYWHERE = ("",)
RECLAIM = "cross_queue_reclaim/"
ORDER = "cross_queue_reclaim/order_of_victims"
CONDITIONS = "lifecycle/reclaim_conditions"


@dataclass(frozen=True)
class Fault:
    """A scheduler that does one thing wrong.

    `where`: the scenarios that may catch it, by a part of their titles (`hierarchy/use_case`) or of a sentence.
    """

    name: str
    does: str
    inject: Callable[[], None]
    where: tuple[str, ...]
    must_fail: Callable[[Specimen], bool] = lambda _: False
    """Scenarios that must all detect the fault; of the other scenarios, one is enough."""
    acts: bool = True
    """Whether the fault does something forbidden, and does not just omit something."""
    ends: bool = False
    """Whether the fault ends the scheduler. If any other fault ends it, the fault no longer fits the product."""
    of_process: bool = False
    """Whether the fault concerns the scheduler's process, so that it needs an embedded cluster."""

    def may_be_seen_by(self, scenario: Specimen) -> bool:
        lines = (scenario.title, *(step.text for step in scenario.steps if step.keyword == "Then"))
        return any(part in line for part in self.where for line in lines)


def instead(*changes: tuple[Any, str, Any]) -> Callable[[], None]:
    """Return an injection that replaces, in each owner, the function of that name."""

    def inject() -> None:
        for owner, name, other in changes:
            getattr(owner, name)  # the injection fails if the function no longer exists
            setattr(owner, name, other)

    return inject


def always(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value
