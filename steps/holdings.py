"""Steps on the amounts that queues hold, in every state that the cluster showed."""

from __future__ import annotations

from decimal import Decimal

from schedspec.api import timeouts
from schedspec.api.capabilities import Capability
from schedspec.checks import holdings
from schedspec.gherkin import tables
from schedspec.gherkin.step_decorators import Wording, judges, refers, then, vacuous
from schedspec.gherkin.things import QUEUE, RESOURCE, WORKLOAD
from schedspec.monitors import Rules
from schedspec.monitors.amounts import parse_quantity
from schedspec.observe.expect import Expect
from schedspec.scenario.session import LiveSession
from schedspec.scenario.world import World

AMOUNT = Wording(r"[0-9][0-9A-Za-z.]* [A-Za-z][-A-Za-z0-9./]*")
"""`8 gpus`, `4 cpu`, `64Gi memory`, `8 amd.com/gpu`."""


@then('queue "{name}" never holds less than {amount:Amount}', needs=(Capability.QUEUES,), Amount=AMOUNT)
@refers(name=QUEUE, amount=RESOURCE)
@judges(WORKLOAD)
@vacuous(lambda values, _: "" if _read(values["amount"])[1] else "no queue can hold less than 0; name a larger amount")
def _(expect: Expect, world: World, live: LiveSession, name: str, amount: str) -> None:
    """Once the queue has held the amount, it never holds less: `8 gpus`, `4 cpu`, `8 amd.com/gpu`."""
    check = holdings.never_below(name, *_read(amount), _rules(world, live))
    expect.eventually(check, within=timeouts.RUNS)
    expect.consistently(check, during=timeouts.HOLDS)


@then('queue "{name}" holds at most {amount:Amount}', needs=(Capability.QUEUES,), Amount=AMOUNT)
@refers(name=QUEUE, amount=RESOURCE)
@judges(WORKLOAD, queue="name")
def _(expect: Expect, world: World, live: LiveSession, name: str, amount: str) -> None:
    """The queue has held at most this amount since the scenario began: `8 gpus`, `4 cpu`, `8 amd.com/gpu`."""
    expect.consistently(holdings.never_above(name, *_read(amount), _rules(world, live)), during=timeouts.HOLDS)


def _read(amount: str) -> tuple[str, Decimal]:
    number, _, word = amount.partition(" ")
    return tables.resource(word), parse_quantity(tables.quantity(number))


def _rules(world: World, live: LiveSession) -> Rules:
    return Rules(world.policy or live.policy)
