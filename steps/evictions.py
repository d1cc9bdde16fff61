"""Steps on evictions: which pods, how many and in which order. A pod is evicted if the scheduler marked it so."""

from __future__ import annotations

from schedspec.api import timeouts
from schedspec.api.capabilities import Capability
from schedspec.api.kinds import Kind
from schedspec.gherkin import tables
from schedspec.gherkin.step_decorators import judges, not_more_than_rows, refers, table, then, vacuous
from schedspec.gherkin.things import POD, WORKLOAD
from schedspec.observe import queries
from schedspec.observe.expect import Check, Expect, Outcome
from schedspec.observe.history import View
from schedspec.steps.columns import PODS, names_of_work

_EITHER = f"{WORKLOAD}|{POD}"
_WORKLOADS = names_of_work("workload", _EITHER)


def _and_no_more(expect: Expect, check: Check) -> None:
    expect.eventually(check, within=timeouts.EVICTED)
    expect.consistently(check, during=timeouts.HOLDS)


def _names(shape: tables.Shape, datatable: tables.Table) -> list[str]:
    return [str(row["name"]) for row in shape.rows(datatable)]


@then("nothing is evicted")
@judges(WORKLOAD)
def _(expect: Expect) -> None:
    """No pod of the scenario was or is evicted."""
    _and_no_more(expect, queries.evicted_exactly([]))


@then("exactly these pods are evicted, once each:", needs=(Capability.POD_NAMES,))
@table(PODS)
def _(expect: Expect, datatable: tables.Table) -> None:
    """Exactly these pods have been evicted since the scenario began. Column: pod."""
    _and_no_more(expect, queries.evicted_exactly(_names(PODS, datatable)))


@then("exactly {number:d} pods are evicted, once each")
@then("exactly {number:d} pod is evicted")
@judges(WORKLOAD)
def _(expect: Expect, number: int) -> None:
    """Exactly this many pods have been evicted since the scenario began, none of them twice."""
    _and_no_more(expect, queries.evicted_count(number))


@then("exactly {number:d} of these is evicted:")
@table(_WORKLOADS)
@vacuous(not_more_than_rows)
def _(expect: Expect, number: int, datatable: tables.Table) -> None:
    """Exactly this many of these workloads lose a pod. Column: workload."""
    workloads = _names(_WORKLOADS, datatable)

    def check(view: View) -> Outcome:
        evictions = queries.evictions(view)
        return queries.exactly_of(
            number, workloads, "lose a pod", (bool(queries.of_workload(evictions, workload)) for workload in workloads)
        )

    _and_no_more(expect, check)


@then('"{name}" is evicted')
@refers(name=_EITHER)
def _(expect: Expect, name: str) -> None:
    """A pod of the workload is evicted."""

    def check(view: View) -> Outcome:
        evictions = queries.evictions(view)
        seen = ", ".join(eviction.pod for eviction in evictions) or "nothing was evicted"
        about = tuple(view.history.ref(Kind.POD, eviction.pod) for eviction in evictions)
        return Outcome(bool(queries.of_workload(evictions, name)), f"{name} is evicted", seen, about)

    expect.eventually(check, within=timeouts.EVICTED)


@then('"{name}" is evicted before any of "{others}"')
@refers(name=_EITHER, others=_EITHER)
@vacuous(
    lambda values, _: "nothing is evicted before itself" if values["name"] in tables.names(values["others"]) else ""
)
def _(expect: Expect, name: str, others: str) -> None:
    """The workload loses a pod before any of the other workloads does."""
    expect.eventually(queries.evicted_before(name, tables.names(others)), within=timeouts.EVICTED)


@then("these start in this order:")
@table(_WORKLOADS)
@vacuous(lambda _, rows: "" if len(rows) > 1 else "an order has at least two workloads")
def _(expect: Expect, datatable: tables.Table) -> None:
    """The first pod of each workload becomes Running in this order. Column: workload."""
    expect.eventually(queries.start_in_order(_names(_WORKLOADS, datatable)), within=timeouts.SHOWN)
