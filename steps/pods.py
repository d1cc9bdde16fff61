"""Steps on pods of a workload: how many run or wait, and for how long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schedspec.api import timeouts
from schedspec.api.capabilities import Capability
from schedspec.api.errors import Unmet
from schedspec.checks import pods, reasons
from schedspec.checks.workloads import wanted_pods
from schedspec.gherkin import quantities, tables
from schedspec.gherkin.quantities import MANY
from schedspec.gherkin.step_decorators import expects_refusal, given, not_more_than_rows, refers, table, then, vacuous
from schedspec.gherkin.things import POD, REASON, WORKLOAD
from schedspec.observe.expect import Expect, Outcome
from schedspec.observe.history import History, View
from schedspec.steps.columns import PODS, names_of_work

_WORKLOADS = names_of_work("workload", WORKLOAD)


@then('"{name}" runs')
@refers(name=WORKLOAD)
def _(expect: Expect, name: str) -> None:
    """Every pod that the workload wants is Running."""
    expect.eventually(pods.runs(name), within=timeouts.RUNS)


@then('"{name}" keeps running')
@refers(name=WORKLOAD)
def _(expect: Expect, name: str) -> None:
    """Every pod that the workload wants is Running, from now on and for a while."""
    expect.consistently(pods.runs(name), during=timeouts.HOLDS)


@then('"{name}" stays pending')
@refers(name=WORKLOAD)
def _(expect: Expect, name: str) -> None:
    """None of its pods gets a node after the scheduler has published why it waits."""
    expect.decided(reasons.waits_with_reason(name))
    expect.consistently(pods.waits(name), during=timeouts.HOLDS)


@then('pod "{name}" stays pending')
@refers(name=POD)
def _(expect: Expect, name: str) -> None:
    """The pod of that name gets no node after the scheduler has published why it waits."""
    expect.decided(reasons.pod_has_reason(name))
    expect.consistently(pods.pod_waits(name), during=timeouts.HOLDS)


def _says_nothing(values: Mapping[str, Any], _: object) -> str:
    return quantities.problem(values["many"])


@given('{many:Many} pods of "{name}" run', Many=MANY)
@given('{many:Many} pod of "{name}" runs', Many=MANY)
@then('{many:Many} pods of "{name}" run', Many=MANY)
@then('{many:Many} pod of "{name}" runs', Many=MANY)
@refers(name=WORKLOAD)
@vacuous(_says_nothing)
def _(expect: Expect, name: str, many: str) -> None:
    """So many of its pods run: exactly 2, at least 2, between 2 and 4, half of the, all but one of the."""
    expect.settles(pods.count_runs(name, many), within=timeouts.RUNS, during=timeouts.HOLDS)


@then('{many:Many} pod of "{name}" stays pending', Many=MANY)
@then('{many:Many} pods of "{name}" stay pending', Many=MANY)
@refers(name=WORKLOAD)
@vacuous(_says_nothing)
def _(expect: Expect, name: str, many: str) -> None:
    """So many of its pods get no node after the scheduler has published why they wait."""
    expect.eventually(pods.are_made(name), within=timeouts.RUNS)
    expect.decided(reasons.has_reason(name))
    expect.settles(pods.count_waits(name, many), within=timeouts.RUNS, during=timeouts.HOLDS)


@then('{many:Many} pod of "{name}" is evicted', Many=MANY)
@then('{many:Many} pods of "{name}" are evicted', Many=MANY)
@refers(name=WORKLOAD)
@vacuous(_says_nothing)
def _(expect: Expect, name: str, many: str) -> None:
    """So many of its pods have been evicted since the scenario began."""
    expect.settles(pods.count_evicted(name, many), within=timeouts.EVICTED, during=timeouts.HOLDS)


@then("exactly these pods run:", needs=(Capability.POD_NAMES,))
@table(PODS)
def _(expect: Expect, datatable: tables.Table) -> None:
    """Exactly these pods of the scenario run, for a while. Column: pod."""
    names = [str(row["name"]) for row in PODS.rows(datatable)]
    expect.settles(pods.exactly_run(names), within=timeouts.RUNS, during=timeouts.HOLDS)


@then("exactly {number:d} of these runs:")
@table(_WORKLOADS)
@vacuous(not_more_than_rows)
def _(expect: Expect, number: int, datatable: tables.Table) -> None:
    """All pods of exactly this many workloads run, and no pod of the others has a node. Column: workload."""
    check = pods.some_run(number, [str(row["name"]) for row in _WORKLOADS.rows(datatable)])
    expect.settles(check, within=timeouts.RUNS, during=timeouts.HOLDS)


@then('each of "{names}" has run')
@refers(names=WORKLOAD)
def _(expect: Expect, names: str) -> None:
    """Each of these workloads has been seen to run since the scenario began."""
    for name in tables.names(names):
        expect.eventually(pods.has_run(name), within=timeouts.RUNS)


@then('"{name}" runs or is refused')
@refers(name=WORKLOAD)
def _(expect: Expect, name: str) -> None:
    """The scheduler has decided: the workload runs, or the scheduler has published why it waits."""
    reason = reasons.has_reason(name)

    def decided(view: View) -> Outcome:
        bound, why = pods.is_bound(name)(view), reason(view)
        return Outcome(bound.ok or why.ok, f"{name} runs or is refused", f"{bound.seen}; {why.seen}", bound.about)

    expect.decided(decided)


@then('"{name}" runs as a whole or not at all')
@refers(name=WORKLOAD)
def _(history: History, expect: Expect, name: str) -> None:
    """All pods that the workload wants run, or none has a node."""
    if wanted_pods(history.now(), name) == 1:
        raise Unmet(f"{name} has several pods, of which a part could run", "it has one pod: this sentence always holds")
    expect.settles(pods.is_whole(name), within=timeouts.EVICTED, during=timeouts.HOLDS)


@then('"{name}" has no pods')
@refers(name=WORKLOAD)
def _(expect: Expect, name: str) -> None:
    """The workload exists and has no pods, and gets none."""
    expect.eventually(pods.has_no_pods(name), within=timeouts.PHASE)
    expect.consistently(pods.has_no_pods(name), during=timeouts.HOLDS)


@then('"{name}" waits because of "{text}"', needs=(Capability.REASONS,))
@refers(name=WORKLOAD, text=REASON)
@vacuous(
    lambda values, _: (
        "the reasons of work may contain its name; name what it lacks"
        if f"{values['text']}-".startswith(f"{values['name']}-")
        else ""
    )
)
@expects_refusal("name")
def _(expect: Expect, name: str, text: str) -> None:
    """The reason that the scheduler publishes for the workload contains this text."""
    expect.eventually(reasons.waits_because(name, text), within=timeouts.REASON)
