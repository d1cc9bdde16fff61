"""Steps on the nodes, racks and spines on which the pods of a workload are."""

from __future__ import annotations

from schedspec.api import kinds, timeouts
from schedspec.api.kinds import LEVELS
from schedspec.checks import topology
from schedspec.gherkin import tables
from schedspec.gherkin.step_decorators import judges, one_of, refers, then, vacuous, word_for
from schedspec.gherkin.things import LABEL, NODE, NODE_GROUP, POD, WORKLOAD
from schedspec.observe.expect import Check, Expect

LEVEL = one_of(*LEVELS)
LEVELS_OF = word_for({f"{level}{many}": level for level in LEVELS for many in ("s", "")})
NODES_OF = word_for({"nodes": topology.NODE, "node": topology.NODE})
PLACES_OF = word_for({**LEVELS_OF.meaning, **NODES_OF.meaning})
_EITHER = f"{WORKLOAD}|{POD}"


def _from_now_on(expect: Expect, check: Check) -> None:
    expect.eventually(check, within=timeouts.RUNS)
    expect.consistently(check, during=timeouts.HOLDS)


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


@then('the pods of "{name}" are in {number:d} {level:Levels}', Levels=LEVELS_OF)
@then('the pods of "{name}" are on {number:d} {level:Nodes}', Nodes=NODES_OF)
@refers(name=WORKLOAD)
def _(expect: Expect, name: str, number: int, level: str) -> None:
    """The workload's pods that have a node are on exactly this many nodes (racks, spines), now and for a while."""
    expect.consistently(topology.is_in_several(name, level, number), during=timeouts.HOLDS)


@then('the pods of "{name}" are spread over {number:d} {level:Places}', Places=PLACES_OF)
@refers(name=WORKLOAD)
@vacuous(lambda values, _: "" if values["number"] > 1 else "pods on one node are not spread; name at least 2")
def _(expect: Expect, name: str, number: int, level: str) -> None:
    """The workload's pods are on exactly this many nodes (racks, spines), and none has two pods more than another."""
    _from_now_on(expect, topology.is_in_several(name, level, number, evenly=True))


@then('the pods of "{name}" are packed on {number:d} {level:Nodes}', Nodes=NODES_OF)
@refers(name=WORKLOAD)
def _(expect: Expect, name: str, number: int, level: str) -> None:
    """The workload's pods are on exactly this many nodes, and at most one of these has room for another pod."""
    del level
    _from_now_on(expect, topology.is_packed(name, number))


@then('"{name}" runs on "{nodes}"')
@refers(name=_EITHER, nodes=NODE)
def _(expect: Expect, name: str, nodes: str) -> None:
    """Every pod of the workload, or the pod of that name, runs on one of these nodes."""
    known = set(tables.names(nodes))
    _from_now_on(expect, topology.runs_on(name, lambda node: node["metadata"]["name"] in known, nodes))


@then('"{name}" runs on a node of group "{group}"')
@then('"{name}" runs on nodes of group "{group}"')
@refers(name=_EITHER, group=NODE_GROUP)
def _(expect: Expect, name: str, group: str) -> None:
    """Every pod of the workload, or the pod of that name, runs on a node of this group (column `group` of nodes)."""
    _from_now_on(expect, _runs_with(name, {kinds.NODE_GROUP: group}, f"nodes of group {group}"))


@then('"{name}" runs on a node with "{labels}"')
@then('"{name}" runs on nodes with "{labels}"')
@refers(name=_EITHER, labels=LABEL)
def _(expect: Expect, name: str, labels: str) -> None:
    """Every pod of the workload, or the pod of that name, runs on a node with these labels: `zone=a, disk=ssd`."""
    _from_now_on(expect, _runs_with(name, tables.labels(labels), f"nodes with {labels}"))


def _runs_with(name: str, labels: dict[str, str], where: str) -> Check:
    return topology.runs_on(name, lambda node: labels.items() <= (node["metadata"].get("labels") or {}).items(), where)


@then('no pod is on "{nodes}"')
@refers(nodes=NODE)
@judges(WORKLOAD)
def _(expect: Expect, nodes: str) -> None:
    """None of these nodes has a pod of the scenario, from now on and for a while."""
    _from_now_on(expect, topology.are_free(tables.names(nodes)))
