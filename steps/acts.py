"""Steps that act while work runs: finish it, delete it, command it, change queues, add and remove nodes."""

from __future__ import annotations

from schedspec.api import timeouts
from schedspec.api.capabilities import Capability
from schedspec.api.kinds import OWNERS, QUEUE_COMMAND_NAMESPACE, SERVED, Kind
from schedspec.checks import nodes, pods
from schedspec.gherkin import tables
from schedspec.gherkin.step_decorators import makes, one_of, refers, table, when
from schedspec.gherkin.things import NODE, POD, QUEUE, WORKLOAD
from schedspec.observe import view as views
from schedspec.observe.expect import Expect
from schedspec.observe.history import History
from schedspec.scenario.world import World
from schedspec.steps.columns import NODES, QUEUE_CHANGES, Cards, nodes_made, with_cards, with_quota_of

JOB_COMMANDS = {"aborted": "AbortJob", "resumed": "ResumeJob"}
QUEUE_COMMANDS = {"closed": "CloseQueue", "opened": "OpenQueue"}


@when('"{name}" completes')
@refers(name=WORKLOAD)
def _(world: World, history: History, expect: Expect, name: str) -> None:
    """Every pod of the workload completes with exit code 0."""
    for pod in views.pods_of(history.now(), name):
        if views.runs(pod):
            world.finish(str(pod["metadata"]["name"]), exit_code=0)
    expect.eventually(pods.is_done(name), within=timeouts.COMPLETES)


@when('whichever of "{names}" runs completes')
@refers(names=WORKLOAD)
def _(world: World, history: History, expect: Expect, names: str) -> None:
    """Each of these workloads that runs completes: all of its pods exit with code 0."""
    view = history.now()
    running = [name for name in tables.names(names) if any(map(views.runs, views.pods_of(view, name)))]
    for name in running:
        for pod in views.pods_of(view, name):
            world.finish(str(pod["metadata"]["name"]), exit_code=0)
    for name in running:
        expect.eventually(pods.is_done(name), within=timeouts.COMPLETES)


@when('"{name}" grows to {number:d} pods', needs=(Capability.GROWTH,))
@refers(name=WORKLOAD)
@makes(lambda values, _: [(POD, f"{values['name']}-*")])
def _(world: World, history: History, name: str, number: int) -> None:
    """A running gang gets more pods; its minimum stays the same."""
    if history.now().get(Kind.VCJOB, name) is not None:
        world.replace(Kind.VCJOB, name, "/spec/tasks/0/replicas", number)
    else:
        existing = views.pods_of(history.now(), name)
        cpu = existing[0]["spec"]["containers"][0]["resources"]["requests"]["cpu"]
        world.apply("more", name=f"{name}-more", gang=name, replicas=number - len(existing), cpu=cpu)


@when('pod "{name}" completes', needs=(Capability.POD_NAMES,))
@refers(name=POD)
def _(world: World, name: str) -> None:
    """One pod completes with exit code 0."""
    world.finish(name, exit_code=0)


@when('pod "{name}" fails with exit code {code:d}', needs=(Capability.POD_NAMES,))
@refers(name=POD)
def _(world: World, name: str, code: int) -> None:
    """One pod fails with this exit code."""
    world.finish(name, exit_code=code)


@when('"{name}" is deleted')
@refers(name=WORKLOAD)
def _(world: World, history: History, expect: Expect, name: str) -> None:
    """The user deletes the workload, and its pods are gone."""
    kind = next((kind for kind in OWNERS if history.now().get(kind, name) is not None), Kind.VCJOB)
    world.delete(kind, name)
    expect.eventually(pods.is_gone(name), within=timeouts.EVICTED)


@when('job "{name}" is {done:Done}', needs=(Capability.JOBS, Capability.COMMANDS), Done=one_of(*JOB_COMMANDS))
@refers(name=WORKLOAD)
def _(world: World, history: History, name: str, done: str) -> None:
    """A Command aborts or resumes the Job."""
    _command(world, history, Kind.VCJOB, name, JOB_COMMANDS[done])


@when('queue "{name}" is {done:Done}', needs=(Capability.QUEUES, Capability.COMMANDS), Done=one_of(*QUEUE_COMMANDS))
@refers(name=QUEUE)
def _(world: World, history: History, name: str, done: str) -> None:
    """A Command closes or opens the Queue."""
    _command(world, history, Kind.QUEUE, name, QUEUE_COMMANDS[done])


def _command(world: World, history: History, kind: Kind, name: str, action: str) -> None:
    target = history.now().get(kind, name)
    uid = target["metadata"]["uid"] if target is not None else ""
    served = SERVED[kind]
    space = world.namespace if served.namespaced else QUEUE_COMMAND_NAMESPACE
    owner = {"apiVersion": served.api_version, "kind": served.kind, "name": name, "uid": uid, "controller": True}
    world.create(
        {
            "apiVersion": "bus.volcano.sh/v1alpha1",
            "kind": "Command",
            "metadata": {"generateName": f"{name}-", "namespace": space, "ownerReferences": [owner]},
            "action": action,
            "target": owner,
        }
    )


@when("these queues change:", needs=(Capability.QUEUES,))
@table(QUEUE_CHANGES)
def _(world: World, cards: Cards, datatable: tables.Table) -> None:
    """Queues get new values while they are in use. Columns as in `these queues:`."""
    world.apply_all(("queue", row) for row in with_quota_of(cards.model, QUEUE_CHANGES.rows(datatable)))


@when("these nodes join:")
@table(NODES)
@makes(nodes_made)
def _(world: World, datatable: tables.Table) -> None:
    """KWOK nodes join the cluster. Columns as in `these nodes:`."""
    world.add_nodes([with_cards(row) for row in NODES.rows(datatable)])


@when('node "{name}" leaves with its pods')
@refers(name=NODE)
def _(world: World, expect: Expect, name: str) -> None:
    """The node is deleted together with its pods."""
    world.remove_node(name)
    expect.eventually(nodes.is_empty(name), within=timeouts.EMPTY)
