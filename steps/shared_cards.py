"""Steps on the shared cards that the pods of a workload use."""

from __future__ import annotations

from schedspec.api import timeouts
from schedspec.api.capabilities import Capability
from schedspec.gherkin.step_decorators import refers, then, vacuous
from schedspec.gherkin.things import WORKLOAD
from schedspec.observe.expect import Expect

from ..checks import nodes

_NEEDS = (Capability.SHARED_CARDS,)


@then('the pods of "{name}" share {number:d} card', needs=_NEEDS)
@then('the pods of "{name}" share {number:d} cards', needs=_NEEDS)
@refers(name=WORKLOAD)
@vacuous(
    lambda values, _: "" if values["number"] else "work without shared cards uses parts of 0; name at least 1 card"
)
def _(expect: Expect, name: str, number: int) -> None:
    """The workload's bound pods use parts of exactly this many cards in total, from now on and for a while."""
    expect.consistently(nodes.are_on(name, number), during=timeouts.HOLDS)


@then('"{name}" and "{other}" share a card', needs=_NEEDS)
@refers(name=WORKLOAD, other=WORKLOAD)
def _(expect: Expect, name: str, other: str) -> None:
    """Pods of both workloads use parts of the same card, from now on and for a while."""
    expect.consistently(nodes.share(name, other, some=True), during=timeouts.HOLDS)


@then('"{name}" and "{other}" share no card', needs=_NEEDS)
@refers(name=WORKLOAD, other=WORKLOAD)
def _(expect: Expect, name: str, other: str) -> None:
    """Pods of the two workloads never use parts of the same card, from now on and for a while."""
    expect.consistently(nodes.share(name, other, some=False), during=timeouts.HOLDS)
