"""Phases of jobs, PodGroups and queues, and the numbers of queues."""

from __future__ import annotations

from schedspec.api import timeouts
from schedspec.api.capabilities import Capability
from schedspec.checks import phases, reasons
from schedspec.gherkin import tables
from schedspec.gherkin.bdd import Sentence
from schedspec.gherkin.step_decorators import table, then
from schedspec.observe.expect import Expect

_STATUS: dict[str, tables.Column] = {
    "queue": ("name", tables.name),
    "deserved": ("deserved", tables.amounts),
    "allocated": ("allocated", tables.amounts),
}


def _of_status(sentence: Sentence) -> set[Capability]:
    return {Capability.QUEUES, *({Capability.DESERVED} if "deserved" in sentence.columns else ())}


@then('the PodGroup of "{name}" is {phase:w}', needs=(Capability.PHASES,))
def _(expect: Expect, name: str, phase: str) -> None:
    """The workload's PodGroup reaches a phase: Pending, Inqueue, Running, Completed."""
    expect.eventually(phases.group_is(name, phase), within=timeouts.PHASE)


@then('the PodGroup of "{name}" stays {phase:w}', needs=(Capability.PHASES,))
def _(expect: Expect, name: str, phase: str) -> None:
    """The PodGroup keeps the phase, counted from when the scheduler has said why it waits."""
    expect.decided(reasons.was_told_why(name))
    expect.eventually(phases.group_is(name, phase), within=timeouts.PHASE)
    expect.consistently(phases.group_is(name, phase), during=timeouts.HOLDS)


@then('the PodGroup of "{name}" goes through {names}', needs=(Capability.PHASES,))
def _(expect: Expect, name: str, names: str) -> None:
    """The PodGroup is seen in these phases, in this order."""
    expect.eventually(phases.group_went_through(name, tables.names(names)), within=timeouts.PHASE)


@then('the PodGroup of "{name}" has minMember {members:d}', needs=(Capability.PHASES,))
def _(expect: Expect, name: str, members: int) -> None:
    """The workload's PodGroup asks for so many pods at once."""
    expect.eventually(phases.group_needs(name, members), within=timeouts.SHOWN)


@then('job "{name}" is {phase:w}', needs=(Capability.JOBS,))
def _(expect: Expect, name: str, phase: str) -> None:
    """The job reaches a phase: Pending, Running, Completed, Failed, Aborted, Terminated …"""
    expect.eventually(phases.job_is(name, phase), within=timeouts.PHASE)


@then('job "{name}" goes through {names}', needs=(Capability.JOBS,))
@then('PyTorchJob "{name}" goes through {names}')
def _(expect: Expect, name: str, names: str) -> None:
    """The job is seen in these phases (of a PyTorchJob: conditions), in this order."""
    expect.eventually(phases.job_went_through(name, tables.names(names)), within=timeouts.PHASE)


@then('queue "{name}" is {state:w}', needs=(Capability.QUEUES,))
def _(expect: Expect, name: str, state: str) -> None:
    """The queue reaches a state: Open, Closing, Closed."""
    expect.eventually(phases.queue_is(name, state), within=timeouts.PHASE)


@then("these queues have:", needs=_of_status)
@table(_STATUS)
def _(expect: Expect, datatable: tables.Table) -> None:
    """What the scheduler says the queues deserve and hold. Columns: queue, deserved, allocated."""
    for row in tables.rows(datatable, _STATUS, required=("queue",)):
        name = str(row.pop("name"))
        for field, amounts in row.items():
            assert isinstance(amounts, dict)
            expect.eventually(phases.queue_has(name, field, amounts), within=timeouts.PHASE)
