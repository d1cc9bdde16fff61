"""Steps on queues, priority classes and the policy, and on their refusal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from schedspec import options
from schedspec.api.capabilities import Capability
from schedspec.api.errors import PolicyRefusedError, RejectedError, Unmet
from schedspec.api.kinds import Kind
from schedspec.gherkin import tables
from schedspec.gherkin.documents import Sentence
from schedspec.gherkin.step_decorators import (
    expects_refusal,
    given,
    judges,
    makes,
    refers,
    removes,
    table,
    then,
    vacuous,
    when,
)
from schedspec.gherkin.things import POLICY, POLICY_FILE, POLICY_OF, PRIORITY_CLASS, QUEUE, QUEUES_OF, SUBMISSION
from schedspec.observe.history import Object
from schedspec.scenario import manifests
from schedspec.scenario.world import World
from schedspec.steps.columns import QUEUE_CLAIMS, QUEUES, Beside, Cards, queues_made, with_quota_of

from ..conformance.levels import needs_of_policy

_OWN_CLASSES, _MOST = "system-", 1_000_000_000
"""Prefix and values of priority classes that Kubernetes keeps for itself."""


def _class_name(text: str) -> str:
    """Parse the name of a priority class. Raises ValueError."""
    if text.startswith(_OWN_CLASSES):
        raise ValueError(f"Kubernetes keeps names with {_OWN_CLASSES} for itself: write another name")
    return tables.name(text)


def _value(text: str) -> int:
    """Parse the value of a priority class. Raises ValueError."""
    if (value := tables.whole(text)) > _MOST:
        raise ValueError(f"write at most {_MOST}: Kubernetes keeps higher values for itself")
    return value


_PREEMPTION = {"never": "Never", "lower priority": "PreemptLowerPriority"}


def _preemption(text: str) -> str:
    """Parse the preemption policy of a priority class. Raises ValueError."""
    if text not in _PREEMPTION:
        raise ValueError(f"write {' or '.join(_PREEMPTION)}: what work of this class may evict")
    return _PREEMPTION[text]


def _one_default(rows: Sequence[tables.Row]) -> Iterator[tables.Flaw]:
    defaults = [number for number, row in enumerate(rows, 1) if row.get("default")]
    yield from ((number, "a cluster has one default class, and an earlier row is it") for number in defaults[1:])


CLASSES = tables.Shape(
    {
        "class": ("name", _class_name),
        "value": ("value", _value),
        "preemption policy": ("preemption", _preemption),
        "default": ("default", tables.yes),
    },
    ("class", "value"),
    unique="class",
    judge_all=_one_default,
)


def _of_classes(sentence: Sentence) -> set[Capability]:
    return {Capability.CLASS_SETTINGS} if {"preemption policy", "default"} & {*sentence.columns} else set()


_BY_COLUMN = {
    "parent": Capability.HIERARCHY,
    "weight": Capability.WEIGHTS,
    "capability": Capability.AMOUNTS,
    "deserved": Capability.AMOUNTS,
    "guarantee": Capability.AMOUNTS,
    "card quota": Capability.CARDS,
    "priority": Capability.QUEUE_PRIORITY,
    **dict.fromkeys(("node groups", "preferred node groups", "avoided node groups"), Capability.NODE_ORDER),
}


def of_policy(sentence: Sentence) -> set[Capability]:
    """Return the capabilities that the policy of that name needs of a scheduler."""
    return needs_of_policy(sentence.text.split('"')[1])


def of_queues(sentence: Sentence) -> set[Capability]:
    """Return the capabilities that a table of queues needs of a scheduler, by its columns and rows."""
    protected = {Capability.PROTECTION for row in sentence.rows if row.get("reclaimable") == "no"}
    return {Capability.QUEUES, *(_BY_COLUMN[name] for name in sentence.columns if name in _BY_COLUMN), *protected}


class Refusals:
    """The refusals since the scenario began. A refusal that no sentence expects fails the scenario."""

    def __init__(self) -> None:
        self.texts: list[str] = []


@pytest.fixture
def schedspec_beside(request: pytest.FixtureRequest) -> Beside:
    """Return the finder of the files that a sentence names."""
    return Beside(manifests.folders_of(request.node.path.parent, options.home(request.config)))


@pytest.fixture
def schedspec_refusals() -> Iterator[Refusals]:
    """Collect refusals for the sentence that expects one."""
    found = Refusals()
    yield found
    if found.texts:
        raise Unmet("no refusal except those that the scenario expects", found.texts[-1])


@given('the policy "{name}"', needs=of_policy)
@refers(name=POLICY)
@makes(lambda values, _rows: [(POLICY, values["name"])])
def _(world: World, name: str) -> None:
    """The scheduler decides by templates/policies/NAME.yaml."""
    world.use_policy(name)


@given('the policy of "{file}"', needs=(Capability.POLICY, Capability.POLICY_FILES))
@refers(file=POLICY_OF)
@makes(lambda values, _rows: [(POLICY_OF, values["file"])])
def _(world: World, beside: Beside, file: str) -> None:
    """The scheduler decides by this file, or by the ConfigMap in it; it is beside the feature or in the root."""
    path = beside(file)
    world.use_policy_text(manifests.policy(path), path.name)


@given('the queues of "{file}"', needs=(Capability.QUEUES,))
@refers(file=QUEUES_OF)
@makes(lambda _values, _rows: [(QUEUE, "*")])
def _(world: World, beside: Beside, file: str) -> None:
    """The Queues of a manifest (`kubectl get queues -o yaml`), beside the feature or in the root."""
    world.apply_rendered(manifests.queues(beside(file)))


@given("a policy by which higher priority preempts lower priority")
@makes(lambda _values, _rows: [(POLICY, "gangs")])
def _(world: World) -> None:
    """The scheduler decides by its policy `gangs`: it preempts by priority."""
    world.use_policy("gangs")


@when('the policy "{name}" is given', needs=(Capability.POLICY, Capability.POLICY_REFUSAL))
@refers(name=POLICY_FILE)
@makes(lambda values, _: [(SUBMISSION, values["name"])])
def _(world: World, refusals: Refusals, name: str) -> None:
    """The scheduler gets a policy that it may refuse."""
    try:
        world.use_policy(name)
    except PolicyRefusedError as refused:
        refusals.texts.append(refused.message)


def _nodes(world: World) -> Iterator[Object]:
    return world.history.now().mine(Kind.NODE)


@given("these queues:", needs=of_queues)
@table(QUEUES)
@makes(queues_made)
def _(world: World, cards: Cards, datatable: tables.Table) -> None:
    """Queues: queue, parent, weight, priority, capability, deserved, guarantee, reclaimable, card quota, and more."""
    world.apply_all(("queue", row) for row in with_quota_of(cards.model, QUEUES.rows(datatable), _nodes(world)))


@when("this queue is submitted:", needs=lambda table: {*of_queues(table), Capability.VALIDATION})
@table(QUEUE_CLAIMS)
@makes(lambda values, rows: [(SUBMISSION, "*"), *queues_made(values, rows)])
def _(world: World, cards: Cards, refusals: Refusals, datatable: tables.Table) -> None:
    """A queue that the API server may refuse. Columns as in `these queues:`."""
    rows = with_quota_of(cards.model, QUEUE_CLAIMS.rows(datatable), _nodes(world))
    try:
        world.apply_all(("queue", row) for row in rows)
    except RejectedError as refused:
        refusals.texts.append(refused.message)


@then('it is refused because of "{text}"')
@then('the policy is refused because of "{text}"')
@vacuous(lambda values, _: "" if values["text"].strip() else "every refusal has the empty text; name a word of it")
@expects_refusal()
@judges(SUBMISSION)
def _(refusals: Refusals, text: str) -> None:
    """The last submission was refused, and the message of the refusal contains this text."""
    message = refusals.texts.pop() if refusals.texts else ""
    if not message or text.lower() not in message.lower():
        raise Unmet(f'a refusal that names "{text}"', message or "nothing was refused")


@given("these priority classes:", needs=_of_classes)
@table(CLASSES)
@makes(lambda _values, rows: [(PRIORITY_CLASS, str(row.get("name", "*"))) for row in rows])
def _(world: World, datatable: tables.Table) -> None:
    """Priority classes: class, value, preemption policy (never, lower priority), default (for work without a class)."""
    world.apply_all(("priorityclass", row) for row in CLASSES.rows(datatable))


@when('priority class "{name}" is deleted', needs=(Capability.CLASS_SETTINGS,))
@removes("name")
@refers(name=PRIORITY_CLASS)
def _(world: World, name: str) -> None:
    """The class is deleted. Pods that exist keep their priority; the API server refuses new pods of the class."""
    world.delete(Kind.PRIORITYCLASS, name)
