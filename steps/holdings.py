"""Steps on the amounts that queues hold, in every state that the cluster showed."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

from schedspec.api import timeouts
from schedspec.api.capabilities import Capability
from schedspec.api.errors import Unmet
from schedspec.api.kinds import Kind
from schedspec.checks import holdings
from schedspec.gherkin import quantities, tables
from schedspec.gherkin.quantities import AMOUNT, RANGE
from schedspec.gherkin.step_decorators import judges, reads, refers, then, vacuous
from schedspec.gherkin.things import QUEUE, RESOURCE, WORKLOAD
from schedspec.monitors import Rules
from schedspec.monitors.amounts import NONE, of_world, parse_quantity
from schedspec.observe.expect import Expect
from schedspec.scenario.session import LiveSession
from schedspec.scenario.world import World


@then('queue "{name}" never holds less than {amount:Amount}', needs=(Capability.QUEUES,), Amount=AMOUNT)
@refers(name=QUEUE, amount=RESOURCE)
@reads(amount=quantities.limits)
@judges(WORKLOAD, queue="name")
@vacuous(lambda values, _: "no queue can hold less than 0; name a larger amount" if _is_zero(values["amount"]) else "")
def _(expect: Expect, world: World, live: LiveSession, name: str, amount: str) -> None:
    """Once the queue has held the amount, it never holds less: `8 gpus`, `4 cpu`, `a third of the gpus`."""
    check = holdings.never_below(name, *_read(world, amount), _rules(world, live))
    expect.eventually(check, within=timeouts.RUNS)
    expect.consistently(check, during=timeouts.HOLDS)


@then('queue "{name}" holds at most {amount:Amount}', needs=(Capability.QUEUES,), Amount=AMOUNT)
@refers(name=QUEUE, amount=RESOURCE)
@reads(amount=quantities.limits)
@judges(WORKLOAD, queue="name")
def _(expect: Expect, world: World, live: LiveSession, name: str, amount: str) -> None:
    """The queue has held at most this amount since the scenario began: `8 gpus`, `4 cpu`, `a third of the gpus`."""
    expect.consistently(holdings.never_above(name, *_read(world, amount), _rules(world, live)), during=timeouts.HOLDS)


@then('queue "{name}" holds {amount:Range}', needs=(Capability.QUEUES,), Range=RANGE)
@refers(name=QUEUE, amount=RESOURCE)
@reads(amount=quantities.limits)
@judges(WORKLOAD, queue="name")
def _(expect: Expect, world: World, live: LiveSession, name: str, amount: str) -> None:
    """The queue holds this amount for a while: `8 gpus`, `between 2 and 4 gpus`, `a third of the gpus`."""
    first, _, last = amount.removeprefix("between ").rpartition(" and ")
    resource, most = _read(world, last)
    least = parse_quantity(tables.quantity(first)) if first else most
    if least > most:
        raise Unmet(f"an amount {amount}", "there is none: write the smaller amount first")
    check = holdings.is_between(name, resource, least, most, _rules(world, live))
    expect.settles(check, within=timeouts.RUNS, during=timeouts.HOLDS)


def _is_zero(amount: str) -> bool:
    number = amount.partition(" ")[0].rstrip("%")
    return number[0].isdigit() and not parse_quantity(number)


def _read(world: World, amount: str) -> tuple[str, Decimal]:
    """Return the resource and the amount; a share is one of all nodes of the scenario."""
    part, of, word = amount.partition(" of the ")
    if not of:
        number, _, word = amount.partition(" ")
        return tables.resource(word), parse_quantity(tables.quantity(number))
    resource = tables.resource(word)
    has = of_world(world.history.now().mine(Kind.NODE)).get(resource, NONE)
    found = quantities.share(part, Fraction(has))
    return resource, Decimal(found.numerator) / found.denominator


def _rules(world: World, live: LiveSession) -> Rules:
    return Rules(world.policy or live.policy)
