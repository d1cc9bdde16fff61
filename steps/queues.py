"""Queues, priority classes and the policy: who may have what, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from schedspec import distribution
from schedspec.api.capabilities import Capability
from schedspec.api.errors import PolicyRefusedError, RejectedError, Unmet
from schedspec.gherkin import tables
from schedspec.gherkin.bdd import Sentence
from schedspec.gherkin.step_decorators import given, makes, refers, table, then, when
from schedspec.gherkin.things import POLICY, POLICY_FILE, PRIORITY_CLASS
from schedspec.monitors.rules import Rules
from schedspec.scenario.world import World

from .columns import QUEUE_CLAIMS, QUEUES, Cards, queues_made

_CLASSES = tables.Shape({"class": ("name", tables.name), "value": ("value", tables.whole)}, ("class", "value"))


_BY_COLUMN = {
    "parent": Capability.HIERARCHY,
    "weight": Capability.WEIGHTS,
    "capability": Capability.AMOUNTS,
    "deserved": Capability.AMOUNTS,
    "guarantee": Capability.AMOUNTS,
    "card quota": Capability.CARDS,
}


def of_policy(sentence: Sentence) -> set[Capability]:
    """What the policy of that name needs: what its plugins are for."""
    name = sentence.text.split('"')[1]
    file = distribution.folder("templates") / "policies" / f"{name}.yaml"
    rules = Rules(file.read_text("utf-8") if file.is_file() else "")
    by_plugin = {"capacity": Capability.AMOUNTS, "capacity-card": Capability.CARDS}
    found = {Capability.POLICY, *([by_plugin[rules.queue_plugin]] if rules.queue_plugin in by_plugin else [])}
    return found | {Capability.HIERARCHY} if rules.is_tree else found


def of_queues(sentence: Sentence) -> set[Capability]:
    """What a table of queues needs: what its columns say."""
    return {Capability.QUEUES, *(_BY_COLUMN[name] for name in sentence.columns if name in _BY_COLUMN)}


class Refusals:
    """What was refused since the scenario began; what nobody asks about in the end was not expected."""

    def __init__(self) -> None:
        self.texts: list[str] = []


@pytest.fixture
def refusals() -> Iterator[Refusals]:
    """Collects refusals for the sentence that expects one."""
    found = Refusals()
    yield found
    if found.texts:
        raise Unmet("every refusal is one that the scenario expects", found.texts[-1])


@given('the policy "{name}"', needs=of_policy)
@refers(name=POLICY)
def _(world: World, name: str) -> None:
    """The scheduler decides by templates/policies/NAME.yaml."""
    world.use_policy(name)


@given("work of higher priority takes the room of work of lower priority")
def _(world: World) -> None:
    """The scheduler decides by its policy `gangs`: it preempts by priority."""
    world.use_policy("gangs")


@when('the policy "{name}" is given', needs=(Capability.POLICY, Capability.POLICY_REFUSAL))
@refers(name=POLICY_FILE)
def _(world: World, refusals: Refusals, name: str) -> None:
    """The scheduler is given a policy that it may refuse."""
    try:
        world.use_policy(name)
    except PolicyRefusedError as refused:
        refusals.texts.append(refused.message)


@given("these queues:", needs=of_queues)
@table(QUEUES)
@makes(queues_made)
def _(world: World, cards: Cards, datatable: tables.Table) -> None:
    """Queues: queue, parent, weight, priority, capability, deserved, guarantee, reclaimable, card quota."""
    rows = QUEUES.rows(datatable)
    for row in rows:
        if isinstance(row.get("card_quota"), int):
            row["card_quota"] = {cards.model: row["card_quota"]}
    world.apply_all(("queue", row) for row in rows)


@when("this queue is submitted:", needs=lambda said: {*of_queues(said), Capability.VALIDATION})
@table(QUEUE_CLAIMS)
@makes(queues_made)
def _(world: World, refusals: Refusals, datatable: tables.Table) -> None:
    """A queue that the API server may refuse. Columns as of `these queues:`."""
    try:
        world.apply_all(("queue", row) for row in QUEUE_CLAIMS.rows(datatable))
    except RejectedError as refused:
        refusals.texts.append(refused.message)


@then('it is refused because of "{text}"')
@then('the policy is refused because of "{text}"')
def _(refusals: Refusals, text: str) -> None:
    """The last thing that was given was refused, and the refusal names this."""
    said = refusals.texts.pop() if refusals.texts else "nothing was refused"
    if text.lower() not in said.lower():
        raise Unmet(f'a refusal that names "{text}"', said)


@given("these priority classes:")
@table(_CLASSES)
@makes(lambda _values, rows: [(PRIORITY_CLASS, str(row.get("name", "*"))) for row in rows])
def _(world: World, datatable: tables.Table) -> None:
    """Priority classes: class, value."""
    world.apply_all(("priorityclass", row) for row in _CLASSES.rows(datatable))
