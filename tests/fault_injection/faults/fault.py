"""What a fault is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.fault_injection.specimens import Specimen

TAG = "fault-"
EVERYWHERE = ("",)
RECLAIM = "cross_queue_reclaim/"
ORDER = "cross_queue_reclaim/order_of_victims"
CONDITIONS = "lifecycle/reclaim_conditions"


@dataclass(frozen=True)
class Fault:
    """A scheduler that does one thing wrong.

    ``where``: the scenarios that may catch it, by a part of their titles (``hierarchy/use_case``) or of a sentence.
    """

    name: str
    does: str
    inject: Callable[[], None]
    where: tuple[str, ...]
    must_fail: Callable[[Specimen], bool] = lambda _: False
    """Scenarios that must all see it; of the others one is enough."""
    acts: bool = True
    """Whether it does something forbidden, rather than doing nothing."""
    ends: bool = False
    """Whether the scheduler ends by it. Of any other fault an end says only that it fits the product no more."""

    def may_be_seen_by(self, scenario: Specimen) -> bool:
        lines = (scenario.title, *(step.text for step in scenario.steps if step.keyword == "Then"))
        return any(part in line for part in self.where for line in lines)


def instead(*changes: tuple[Any, str, Any]) -> Callable[[], None]:
    """An injection: of each owner, the function of that name is replaced."""

    def inject() -> None:
        for owner, name, other in changes:
            getattr(owner, name)  # a fault must not outlive what it breaks
            setattr(owner, name, other)

    return inject


def always(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value
