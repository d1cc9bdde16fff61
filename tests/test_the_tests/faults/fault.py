"""Define `Fault`, which describes a fault, its injection and the scenarios that can detect it."""

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
    """One thing that a scheduler does wrong. `does` completes the sentence "The scheduler …".

    `where`: scenarios that may detect it, by part of their titles (`hierarchy/use_case`) or of a `Then` sentence.
    """

    name: str
    does: str
    inject: Callable[[], None]
    where: tuple[str, ...]
    must_fail: Callable[[Specimen], bool] = lambda _: False
    """Whether a scenario must detect the fault. Of the other scenarios, one that detects it is enough."""
    acts: bool = True
    """Whether the scheduler does something forbidden, rather than only omitting something."""
    ends: bool = False
    """Whether the fault ends the scheduler. If another fault ends it, its injection no longer fits the product."""
    of_process: bool = False
    """Whether the fault concerns the scheduler's process, so that it needs an embedded cluster."""

    def may_be_detected_by(self, scenario: Specimen) -> bool:
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
