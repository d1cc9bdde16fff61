"""Steps on time: what happens after, during, every or within some time, virtual or real."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from schedspec.api import clock
from schedspec.checks import pods
from schedspec.gherkin import quantities, tables
from schedspec.gherkin.quantities import SPAN
from schedspec.gherkin.step_decorators import Thing, given, makes, of_later, reads, refers, table, then, when
from schedspec.gherkin.things import WORKLOAD
from schedspec.observe.expect import Expect
from schedspec.steps.jobs import SHAPES, WORK, Submit, of_work, work_made

_MOST_TIMES = 1000
"""Maximum number of times that work arrives in one sentence."""


@given("{span:Span} have passed", Span=SPAN)
@given("{span:Span} has passed", Span=SPAN)
@when("{span:Span} pass", Span=SPAN)
@when("{span:Span} passes", Span=SPAN)
@reads(span=quantities.seconds)
def _(span: str) -> None:
    """Time passes, in which anything may happen. Later objects are then younger, in whole seconds."""
    clock.sleep(quantities.seconds(span))


@when('"{name}" stays pending for {span:Span}', Span=SPAN)
@then('"{name}" stays pending for {span:Span}', Span=SPAN)
@refers(name=WORKLOAD)
@reads(span=quantities.seconds)
def _(expect: Expect, name: str, span: str) -> None:
    """None of its pods gets a node for this time."""
    expect.consistently(pods.waits(name), during=quantities.seconds(span))


@then('"{name}" keeps running for {span:Span}', Span=SPAN)
@refers(name=WORKLOAD)
@reads(span=quantities.seconds)
def _(expect: Expect, name: str, span: str) -> None:
    """Every pod that the workload wants is Running, from now on and for this time."""
    expect.consistently(pods.runs(name), during=quantities.seconds(span))


@then("within {span:Span} all of this happens", Span=SPAN)
@reads(span=quantities.seconds)
@of_later
def _(expect: Expect, span: str) -> None:
    """The conditions of all later sentences must come true within this time from now, instead of each in its own."""
    expect.set_deadline(quantities.seconds(span))


def _times(number: int) -> int:
    """Return how often work arrives. Raises ValueError."""
    if not 1 < number <= _MOST_TIMES:
        raise ValueError(f"write 2 to {_MOST_TIMES} times: what arrives once is submitted")
    return number


def _arrived(values: Mapping[str, Any], rows: Sequence[tables.Row]) -> list[Thing]:
    numbered = [row for number in range(1, min(values["number"], _MOST_TIMES) + 1) for row in _numbered(rows, number)]
    return work_made(values, numbered)


def _numbered(rows: Sequence[tables.Row], number: int) -> list[tables.Row]:
    return [{**row, "name": f"{row.get('name', '*')}-{number}"} for row in rows]


@when("every {span:Span} these {work:Work} arrive, {number:d} times:", needs=of_work, Span=SPAN, Work=WORK)
@table(SHAPES)
@makes(_arrived)
@reads(span=quantities.seconds, number=_times)
def _(submit: Submit, span: str, work: str, number: int, datatable: tables.Table) -> None:
    """Work is submitted again and again. Names get the number of the time: `batch-1`, `batch-2`."""
    for time in range(1, number + 1):
        if time > 1:
            clock.sleep(quantities.seconds(span))
        submit(work, datatable, time)
