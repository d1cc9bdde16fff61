"""Steps that act while work runs: finish it, delete it, command it, change queues, add and remove nodes."""

from __future__ import annotations

from schedspec.api import spaces, timeouts
from schedspec.api.capabilities import Capability
from schedspec.api.errors import Unmet
from schedspec.api.kinds import OWNERS, QUEUE_COMMAND_NAMESPACE, SERVED, Kind
from schedspec.checks import nodes, phases, pods
from schedspec.gherkin import tables
from schedspec.gherkin.step_decorators import makes, one_of, only_names, refers, removes, table, vacuous, when
from schedspec.gherkin.things import NODE, POD, QUEUE, WORKLOAD
from schedspec.monitors.amounts import parse
from schedspec.observe import view as views
from schedspec.observe.expect import Expect
from schedspec.observe.history import History, View
from schedspec.scenario.world import World
from schedspec.steps.columns import NODES, QUEUE_CHANGES, Cards, nodes_made, with_cards, with_quota_of

JOB_COMMANDS = {"aborted": "AbortJob", "resumed": "ResumeJob"}
QUEUE_COMMANDS = {"closed": "CloseQueue", "opened": "OpenQueue"}
_OVER = ("Aborting", "Aborted", "Completing", "Completed", "Terminating", "Terminated", "Failed")
_SHUT = ("Closing", "Closed")
_CHANGES = {"AbortJob": (_OVER, False), "ResumeJob": (_OVER[:2], True)}
_CHANGES |= {"CloseQueue": (_SHUT, False), "OpenQueue": (_SHUT, True)}
"""Action → states, and whether its target must have one of them: else the action changes nothing."""


@when('"{name}" completes')
@refers(name=WORKLOAD)
def _(world: World, history: History, expect: Expect, name: str) -> None:
    """Every pod of the workload completes with exit code 0."""
    expect.eventually(pods.can_finish(name), within=timeouts.RUNS)
    for pod in views.pods_of(history.now(), name):
        if views.runs(pod):
            world.finish(str(pod["metadata"]["name"]), exit_code=0)
    expect.eventually(pods.is_done(name), within=timeouts.COMPLETES)


@when('whichever of "{names}" runs completes')
@refers(names=WORKLOAD)
@vacuous(lambda values, _: "" if "," in values["names"] else "of one workload; write that it completes")
def _(world: World, history: History, expect: Expect, names: str) -> None:
    """Each of these workloads that runs completes: all of its pods exit with code 0. At least one runs."""
    expect.eventually(pods.one_can_finish(tables.names(names)), within=timeouts.RUNS)
    _finish_running(world, history, expect, tables.names(names))


@when('"{name}" completes if it runs')
@refers(name=WORKLOAD)
def _(world: World, history: History, expect: Expect, name: str) -> None:
    """Every pod of the workload completes with exit code 0 if all of them run; otherwise nothing happens."""
    _finish_running(world, history, expect, [name])


def _finish_running(world: World, history: History, expect: Expect, names: list[str]) -> None:
    view = history.now()
    running = [name for name in names if pods.can_finish(name)(view).ok]
    for name in running:
        for pod in views.pods_of(view, name):
            world.finish(str(pod["metadata"]["name"]), exit_code=0)
    for name in running:
        expect.eventually(pods.is_done(name), within=timeouts.COMPLETES)


@when('"{name}" is {done:Done}', Done=one_of("suspended", "resumed"))
@refers(name=WORKLOAD)
def _(world: World, history: History, expect: Expect, name: str, done: str) -> None:
    """The user suspends a job, so that its pods go, or resumes it; under Kueue, its Workload."""
    view, suspends = history.now(), done == "suspended"
    group = views.podgroup_of(view, name)
    if view.get(Kind.VCJOB, name) is not None:
        _command(world, history, expect, (Kind.VCJOB, name), JOB_COMMANDS["aborted" if suspends else "resumed"])
    elif group is not None and group["kind"] == SERVED[Kind.WORKLOAD].kind:
        _require_change(name, not group["spec"].get("active", True), suspends)
        world.patch(Kind.WORKLOAD, str(group["metadata"]["name"]), {"spec": {"active": not suspends}})
    else:
        _suspend(world, view, name, suspends)


def _suspend(world: World, view: View, name: str, suspends: bool) -> None:
    kind = next((kind for kind in (Kind.JOB, Kind.PYTORCHJOB) if view.get(kind, name) is not None), None)
    if kind is None:
        raise Unmet(f"{name} is a job that can be suspended", "it is not")
    spec = (view.get(kind, name) or {})["spec"]
    policy = spec if kind is Kind.JOB else spec.get("runPolicy") or {}
    _require_change(name, bool(policy.get("suspend")), suspends)
    change = {"suspend": suspends}
    world.patch(kind, name, {"spec": change if kind is Kind.JOB else {"runPolicy": change}})


def _require_change(name: str, is_suspended: bool, suspends: bool) -> None:
    if is_suspended is suspends:
        wanted, seen = ("not ", "") if suspends else ("", "not ")
        raise Unmet(f"{name} is {wanted}suspended: else this changes nothing", f"it is {seen}suspended")


@when('pod "{name}" completes', needs=(Capability.POD_NAMES,))
@refers(name=POD)
def _(world: World, expect: Expect, name: str) -> None:
    """One pod completes with exit code 0."""
    _finish_pod(world, expect, name, 0)


@when('pod "{name}" fails with exit code {code:d}', needs=(Capability.POD_NAMES,))
@refers(name=POD)
@vacuous(lambda values, _: "" if 0 < values["code"] < 256 else "no pod fails with this exit code; write 1 to 255")
def _(world: World, expect: Expect, name: str, code: int) -> None:
    """One pod fails with this exit code."""
    _finish_pod(world, expect, name, code)


def _finish_pod(world: World, expect: Expect, name: str, code: int) -> None:
    expect.eventually(pods.pod_can_finish(name), within=timeouts.RUNS)
    pod = world.history.now().get(Kind.POD, name)
    world.finish(name, exit_code=code)
    expect.eventually(pods.have_ended([pod] if pod is not None else []), within=timeouts.COMPLETES)


@when('every binding of "{name}" is refused')
@refers(name=WORKLOAD)
def _(world: World, history: History, name: str) -> None:
    """The API server refuses to bind pods of waiting work, as an operator's admission webhook does."""
    found = views.pods_of(history.now(), name)
    if found and not any(map(views.waits, found)):
        raise Unmet(f"{name} has a pod without a node: else this changes nothing", "all of its pods have nodes")
    world.bindings.refuse(name)


@when('the bindings of "{name}" are accepted again')
@refers(name=WORKLOAD)
def _(world: World, name: str) -> None:
    """The API server binds pods of this work again."""
    if not world.bindings.accept(name):
        raise Unmet(f"the bindings of {name} are refused: else this changes nothing", "they are accepted")


@when('"{name}" is deleted')
@removes("name")
@refers(name=WORKLOAD)
def _(world: World, history: History, expect: Expect, name: str) -> None:
    """The user deletes the workload, and its pods are gone."""
    kind = next((kind for kind in (*OWNERS, Kind.POD) if history.now().get(kind, name) is not None), None)
    if kind is None:
        raise Unmet(f"{name} exists, and can be deleted", "it is gone")
    world.delete(kind, name)
    expect.eventually(pods.is_gone(name), within=timeouts.EVICTED)


@when('job "{name}" is {done:Done}', needs=(Capability.JOBS, Capability.COMMANDS), Done=one_of(*JOB_COMMANDS))
@refers(name=WORKLOAD)
def _(world: World, history: History, expect: Expect, name: str, done: str) -> None:
    """A Command aborts or resumes the Job."""
    _command(world, history, expect, (Kind.VCJOB, name), JOB_COMMANDS[done])


@when('queue "{name}" is {done:Done}', needs=(Capability.QUEUES, Capability.COMMANDS), Done=one_of(*QUEUE_COMMANDS))
@refers(name=QUEUE)
def _(world: World, history: History, expect: Expect, name: str, done: str) -> None:
    """A Command closes or opens the Queue."""
    _command(world, history, expect, (Kind.QUEUE, name), QUEUE_COMMANDS[done])


def _command(world: World, history: History, expect: Expect, target_of: tuple[Kind, str], action: str) -> None:
    kind, name = target_of
    target = history.now().get(kind, name)
    if target is None:
        world.require_own(history.ref(kind, name))
        raise Unmet(f"{kind} {name} exists, and can be commanded", "it does not exist")
    states, is_one = _CHANGES[action]
    expect.eventually(phases.has_state(kind, name, states, is_one), within=timeouts.PHASE)
    served = SERVED[kind]
    space, own_name = spaces.real(world.namespace, name) if served.namespaced else (QUEUE_COMMAND_NAMESPACE, name)
    owner = {"apiVersion": served.api_version, "kind": served.kind, "name": own_name, "controller": True}
    owner["uid"] = target["metadata"]["uid"]
    world.create(
        {
            "apiVersion": "bus.volcano.sh/v1alpha1",
            "kind": "Command",
            "metadata": {"generateName": f"{own_name}-", "namespace": space, "ownerReferences": [owner]},
            "action": action,
            "target": owner,
        }
    )
    expect.eventually(phases.has_state(kind, name, states, not is_one), within=timeouts.PHASE)


@when("these queues change:", needs=(Capability.QUEUES,))
@table(QUEUE_CHANGES)
@vacuous(only_names)
def _(world: World, history: History, cards: Cards, datatable: tables.Table) -> None:
    """Queues get new values while they are in use. Columns as in `these queues:`."""
    rows = list(with_quota_of(cards.model, QUEUE_CHANGES.rows(datatable), world.history.now().mine(Kind.NODE)))
    names = [str(row["name"]) for row in rows]
    before = {name: _settings(history, name) for name in names}
    world.apply_all(("queue", row) for row in rows)
    if same := [name for name in names if before[name] is not None and _settings(history, name) == before[name]]:
        raise Unmet(f"queue {same[0]} changes", "it has these values already")


def _settings(history: History, queue: str) -> tuple[object, object] | None:
    """Return the spec, with amounts as numbers, and the annotations of a queue; None if it does not exist."""
    found = history.now().get(Kind.QUEUE, queue)
    if found is None:
        return None
    spec = found["spec"]
    amounts = {"guarantee": (spec.get("guarantee") or {}).get("resource")}
    amounts |= {field: spec[field] for field in ("deserved", "capability") if field in spec}
    return spec | {field: parse(given) for field, given in amounts.items()}, found["metadata"].get("annotations")


@when("these nodes join:")
@table(NODES)
@makes(nodes_made)
def _(world: World, datatable: tables.Table) -> None:
    """KWOK nodes join the cluster. Columns as in `these nodes:`."""
    world.add_nodes([with_cards(row) for row in NODES.rows(datatable)])


@when('node "{name}" leaves with its pods')
@removes("name")
@refers(name=NODE)
def _(world: World, history: History, expect: Expect, name: str) -> None:
    """The node is deleted together with its pods."""
    if history.now().get(Kind.NODE, name) is None:
        raise Unmet(f"node {name} exists, and can leave", "there is no such node")
    world.remove_node(name)
    expect.eventually(nodes.is_empty(name), within=timeouts.EMPTY)
