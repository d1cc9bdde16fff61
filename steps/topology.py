"""Steps on the racks and spines in which the pods of a workload are."""

from __future__ import annotations

from schedspec.api import timeouts
from schedspec.api.kinds import LEVELS
from schedspec.checks import topology
from schedspec.gherkin.step_decorators import one_of, refers, then
from schedspec.gherkin.things import WORKLOAD
from schedspec.observe.expect import Expect

LEVEL = one_of(*LEVELS)
LEVELS_OF = one_of(*(f"{level}s" for level in LEVELS))


@then('every pod of "{name}" is in one {level:Level}', Level=LEVEL)
@refers(name=WORKLOAD)
def _(expect: Expect, name: str, level: str) -> None:
    """All pods of the workload that have a node are in the same rack (or spine), from now on and for a while."""
    expect.consistently(topology.is_in(name, level), during=timeouts.HOLDS)


@then('every pod of "{name}" is in {level:Level} "{domain}"', Level=LEVEL)
@refers(name=WORKLOAD)
def _(expect: Expect, name: str, level: str, domain: str) -> None:
    """All pods of the workload that have a node are in the named rack (or spine), from now on and for a while."""
    expect.consistently(topology.is_in(name, level, domain), during=timeouts.HOLDS)


@then('the pods of "{name}" are in {number:d} {levels:Levels}', Levels=LEVELS_OF)
@refers(name=WORKLOAD)
def _(expect: Expect, name: str, number: int, levels: str) -> None:
    """The workload's pods that have a node are in exactly this many racks (or spines), from now on and for a while."""
    expect.consistently(topology.is_in_several(name, levels.removesuffix("s"), number), during=timeouts.HOLDS)
