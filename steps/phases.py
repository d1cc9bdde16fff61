"""Steps on phases of jobs and PodGroups, states of queues, and the amounts in the status of queues."""

from __future__ import annotations

from schedspec.api import timeouts
from schedspec.api.capabilities import Capability
from schedspec.checks import phases, reasons
from schedspec.gherkin import tables
from schedspec.gherkin.documents import Sentence
from schedspec.gherkin.step_decorators import one_of, only_names, refers, several_of, table, then, vacuous
from schedspec.gherkin.things import QUEUE, WORKLOAD
from schedspec.observe.expect import Expect
from schedspec.steps.columns import amounts_needed


def _allocated(text: str) -> dict[str, str]:
    """Parse amounts that a queue holds. Raises ValueError."""
    found = tables.amounts(text)
    if none := next((name for name, number in found.items() if not tables.amount(number)), None):
        raise ValueError(f"{none} is 0 before anything happens: write that the queue holds 0 of it")
    return found


_STATUS = tables.Shape(
    {
        "queue": ("name", tables.name),
        "deserved": ("deserved", tables.amounts),
        "allocated": ("allocated", _allocated),
    },
    required=("queue",),
    refers={"queue": QUEUE},
    needs=amounts_needed("deserved", "allocated"),
)


_OF_GROUPS = ("Pending", "Inqueue", "Running", "Unknown", "Completed")
_OF_VOLCANO = ("Aborting", "Aborted", "Running", "Restarting", "Completing", "Completed", "Terminating", "Terminated")
_OF_OTHERS = ("Created", "Succeeded", "Complete", "Suspended", "SuccessCriteriaMet", "FailureTarget")
_OF_JOBS = ("Pending", *_OF_VOLCANO, "Failed", *_OF_OTHERS)
PHASES = {
    "Phase": one_of(*_OF_GROUPS),
    "Phases": several_of(*_OF_GROUPS),
    "JobPhase": one_of(*_OF_JOBS),
    "JobPhases": several_of(*_OF_JOBS),
}
"""The phases of PodGroups and jobs. For PyTorchJobs and Kubernetes Jobs, these are types of conditions."""
STATE = one_of("Open", "Closing", "Closed", "Unknown")


def _of_status(sentence: Sentence) -> set[Capability]:
    return {Capability.QUEUES, *({Capability.DESERVED} if "deserved" in sentence.columns else ())}


@then('the PodGroup of "{name}" is {phase:Phase}', needs=(Capability.PHASES,), **PHASES)
@refers(name=WORKLOAD)
def _(expect: Expect, name: str, phase: str) -> None:
    """The workload's PodGroup reaches a phase: Pending, Inqueue, Running, Completed."""
    expect.eventually(phases.group_is(name, phase), within=timeouts.PHASE)


@then('the PodGroup of "{name}" stays {phase:Phase}', needs=(Capability.PHASES,), **PHASES)
@refers(name=WORKLOAD)
def _(expect: Expect, name: str, phase: str) -> None:
    """The PodGroup keeps the phase after the scheduler has published why the PodGroup waits."""
    expect.decided(reasons.has_reason(name))
    expect.eventually(phases.group_is(name, phase), within=timeouts.PHASE)
    expect.consistently(phases.group_is(name, phase), during=timeouts.HOLDS)


@then('the PodGroup of "{name}" goes through {names:Phases}', needs=(Capability.PHASES,), **PHASES)
@refers(name=WORKLOAD)
def _(expect: Expect, name: str, names: str) -> None:
    """The PodGroup is seen in these phases, in this order."""
    expect.eventually(phases.group_went_through(name, tables.names(names)), within=timeouts.PHASE)


@then('the PodGroup of "{name}" has minMember {members:d}', needs=(Capability.PHASES,))
@refers(name=WORKLOAD)
@vacuous(lambda values, _: "" if values["members"] else "every gang needs 0 pods; name at least 1")
def _(expect: Expect, name: str, members: int) -> None:
    """The workload's PodGroup requires this many pods at once."""
    expect.eventually(phases.group_needs(name, members), within=timeouts.SHOWN)


@then('job "{name}" is {phase:JobPhase}', needs=(Capability.JOBS, Capability.PHASES), **PHASES)
@refers(name=WORKLOAD)
def _(expect: Expect, name: str, phase: str) -> None:
    """The job reaches a phase: Pending, Running, Completed, Failed, Aborted, Terminated, and more."""
    expect.eventually(phases.job_is(name, phase), within=timeouts.PHASE)


@then('job "{name}" goes through {names:JobPhases}', needs=(Capability.JOBS, Capability.PHASES), **PHASES)
@then('PyTorchJob "{name}" goes through {names:JobPhases}', (), **PHASES)
@refers(name=WORKLOAD)
def _(expect: Expect, name: str, names: str) -> None:
    """The job is seen in these phases (of a PyTorchJob: conditions), in this order."""
    expect.eventually(phases.job_went_through(name, tables.names(names)), within=timeouts.PHASE)


@then('queue "{name}" is {state:State}', needs=(Capability.QUEUES,), State=STATE)
@refers(name=QUEUE)
def _(expect: Expect, name: str, state: str) -> None:
    """The queue reaches a state: Open, Closing, Closed."""
    expect.eventually(phases.queue_is(name, state), within=timeouts.PHASE)


@then("these queues have:", needs=_of_status)
@table(_STATUS)
@vacuous(only_names)
def _(expect: Expect, datatable: tables.Table) -> None:
    """The deserved and allocated amounts in the queues' status, for a while. Columns: queue, deserved, allocated."""
    for row in _STATUS.rows(datatable):
        name = str(row.pop("name"))
        for field, amounts in row.items():
            assert isinstance(amounts, dict)
            expect.settles(phases.queue_has(name, field, amounts), within=timeouts.PHASE, during=timeouts.HOLDS)
