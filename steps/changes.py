"""Steps that change the spec of work while it runs: the number of its pods, its minimum, the template of its pods."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from schedspec.api import timeouts
from schedspec.api.capabilities import Capability
from schedspec.api.errors import RejectedError, Unmet
from schedspec.api.kinds import GANGS, Kind
from schedspec.checks import rollouts
from schedspec.checks.workloads import wanted_pods
from schedspec.gherkin import quantities, tables
from schedspec.gherkin.quantities import REQUEST
from schedspec.gherkin.step_decorators import judges, makes, reads, refers, then, vacuous, when
from schedspec.gherkin.things import POD, PRIORITY_CLASS, RESOURCE, SUBMISSION, WORKLOAD
from schedspec.observe import view as views
from schedspec.observe.expect import Expect
from schedspec.observe.history import History, Object, View
from schedspec.scenario import own_work
from schedspec.scenario.world import World
from schedspec.steps.queues import Refusals

_RESIZED = (Kind.VCJOB, Kind.DEPLOYMENT, Kind.STATEFULSET, Kind.PYTORCHJOB, Kind.JOB)
_VERSION = "schedspec.dev/version"
"""Annotation of pods that a new version of a template changes: a scenario has one image only."""


@when('"{name}" grows to {number:d} pods', needs=(Capability.GROWTH,))
@refers(name=WORKLOAD)
@makes(lambda values, _: [(POD, f"{values['name']}-*")])
def _(world: World, history: History, name: str, number: int) -> None:
    """A running job, gang, service or elastic PyTorchJob gets more pods; the minimum of a gang stays the same."""
    _resize(world, history.now(), name, number, "grows")


def _more_than_there_are(values: Mapping[str, Any], _: object) -> str:
    if not 0 < values["needed"] <= values["number"]:
        return f"{values['needed']} of {values['number']} pods cannot be needed: write 1 to {values['number']}"
    return ""


@when('"{name}" grows to {number:d} pods, of which {needed:d} are needed', needs=(Capability.JOB_TASKS,))
@refers(name=WORKLOAD)
@makes(lambda values, _: [(POD, f"{values['name']}-*")])
@vacuous(_more_than_there_are)
def _(world: World, history: History, name: str, number: int, needed: int) -> None:
    """A Volcano Job gets more pods and another minimum at once: so many of them have to run together."""
    job = history.now().get(Kind.VCJOB, name)
    if job is None:
        raise Unmet(f"{name} is a Volcano Job, whose minimum can change", "it is not")
    more = number - (wanted_pods(history.now(), name) or 0)
    if more <= 0:
        raise Unmet(f"{name} grows to {views.count(number, 'pod')}", f"it wants {number - more} already")
    _resize_job(world, job, name, more, needed)


@when('"{name}" shrinks to {number:d} pods', needs=(Capability.GROWTH,))
@when('"{name}" shrinks to {number:d} pod', needs=(Capability.GROWTH,))
@refers(name=WORKLOAD)
def _(world: World, history: History, name: str, number: int) -> None:
    """A job, service or elastic PyTorchJob wants fewer pods; the minimum of a job becomes at most their number."""
    _resize(world, history.now(), name, number, "shrinks")


def _resize(world: World, view: View, name: str, number: int, does: str) -> None:
    kind = next((kind for kind in _RESIZED if view.get(kind, name) is not None), None)
    is_gang = kind is Kind.JOB and any(view.get(gang, name) for gang in GANGS)
    if kind is None or (kind is Kind.JOB and not (is_gang and does == "grows")):
        raise Unmet(
            f"{name} is a job or a service{', or a gang' * (does == 'grows')}: no other work {does}", "it is not"
        )
    more = number - (wanted_pods(view, name) or 0)
    if more == 0 or (more > 0) is (does == "shrinks"):
        raise Unmet(f"{name} {does} to {views.count(number, 'pod')}", f"it wants {number - more} already")
    if kind in (Kind.DEPLOYMENT, Kind.STATEFULSET):
        world.scale(kind, name, number)
    elif kind is Kind.VCJOB:
        _resize_job(world, view.get(kind, name) or {}, name, more)
    elif kind is Kind.PYTORCHJOB:
        _resize_training(world, view.get(kind, name) or {}, name, more)
    else:
        requests = dict(views.pods_of(view, name)[0]["spec"]["containers"][0]["resources"]["requests"])
        own = {column: requests.pop(column) for column in ("cpu", "memory") if column in requests}
        world.apply("more", name=f"{name}-more", gang=name, replicas=more, **own, **{tables.BY_RESOURCE: requests})


def _resize_job(world: World, job: Object, name: str, more: int, needed: int | None = None) -> None:
    """Change the first task of a Volcano Job by so many pods, in one update. `needed` is the new minimum of the job."""
    tasks = copy.deepcopy(job["spec"]["tasks"])
    replicas = int(tasks[0]["replicas"]) + more
    if replicas < 0:
        raise Unmet(f"the first task of {name} has {-more} pods to lose", f"it has {tasks[0]['replicas']}")
    tasks[0]["replicas"] = replicas
    before = int(job["spec"].get("minAvailable") or 0)
    least = min(before, sum(int(it["replicas"]) for it in tasks)) if needed is None else needed
    if own := int(tasks[0].get("minAvailable") or 0):
        tasks[0]["minAvailable"] = min(max(own + least - before, 0) if needed is not None else own, replicas)
    world.patch(Kind.VCJOB, name, {"spec": {"tasks": tasks, "minAvailable": least}})


def _resize_training(world: World, job: Object, name: str, more: int) -> None:
    """Change the number of workers of an elastic PyTorchJob, within its bounds."""
    policy = job["spec"].get("elasticPolicy")
    workers = int(((job["spec"]["pytorchReplicaSpecs"].get("Worker")) or {}).get("replicas", 0))
    if policy is None:
        raise Unmet(f"{name} is elastic: another PyTorchJob keeps its workers", "it has no min or max workers")
    fewest, most = (int(policy.get(bound, workers)) for bound in ("minReplicas", "maxReplicas"))
    if not fewest <= workers + more <= most:
        raise Unmet(f"{name} has {fewest} to {most} workers", f"{workers + more} are wanted")
    world.replace(Kind.PYTORCHJOB, name, "/spec/pytorchReplicaSpecs/Worker/replicas", workers + more)


# ------------------------------------------------------------------------------------------------- the pods' template


@when('the pods of "{name}" now request {amount:Request}', Request=REQUEST)
@refers(name=WORKLOAD, amount=RESOURCE)
@reads(amount=quantities.limits)
@makes(lambda _values, _rows: [(SUBMISSION, "*")])
def _(world: World, refusals: Refusals, name: str, amount: str) -> None:
    """The template of a service gets another request, and its pods are replaced. A job keeps its template."""
    number, _, word = amount.partition(" ")
    requested = {tables.resource(word): number}
    _change(world, refusals, name, lambda pod: own_work.request(pod["spec"]["containers"][0], requested))


@when('the pods of "{name}" now have priority class "{priority}"')
@refers(name=WORKLOAD, priority=PRIORITY_CLASS)
@makes(lambda _values, _rows: [(SUBMISSION, "*")])
def _(world: World, refusals: Refusals, name: str, priority: str) -> None:
    """The template of a service gets another priority class. Its controller replaces the pods."""

    def weigh(pod: Object) -> None:
        labels = pod["metadata"].setdefault("labels", {})
        if own_work.LOCAL_QUEUE in labels:  # kube-scheduler must not see the priority (templates/kueue/_managed.j2)
            labels[own_work.WORKLOAD_CLASS] = priority
        else:
            pod["spec"]["priorityClassName"] = priority

    _change(world, refusals, name, weigh)


@when('the pods of "{name}" get a new version')
@refers(name=WORKLOAD)
@makes(lambda _values, _rows: [(SUBMISSION, "*")])
def _(world: World, refusals: Refusals, name: str) -> None:
    """The template of a service changes, as by a new image, but not its requests. Its controller replaces the pods."""

    def renew(pod: Object) -> None:
        notes = pod["metadata"].setdefault("annotations", {})
        notes[_VERSION] = str(int(notes.get(_VERSION, "1")) + 1)

    _change(world, refusals, name, renew)


def _change(world: World, refusals: Refusals, name: str, change: Callable[[Object], None]) -> None:
    """Change the template of pods. The API server refuses this for jobs, whose pods keep their template."""
    view = world.history.now()
    kind = next((kind for kind in (*rollouts.ROLLED_OUT, Kind.VCJOB, Kind.JOB) if view.get(kind, name)), None)
    if kind is None:
        raise Unmet(f"{name} is a service, a StatefulSet or a job, which has a template of its pods", "it is not")
    before = (view.get(kind, name) or {})["spec"]
    spec = copy.deepcopy(before)
    change(spec["tasks"][0]["template"] if kind is Kind.VCJOB else spec["template"])
    if spec == before:
        raise Unmet(f"the template of {name} changes", "it has these values already")
    try:
        world.patch(kind, name, {"spec": {part: spec[part] for part in ("tasks", "template") if part in spec}})
    except RejectedError as refused:
        refusals.texts.append(refused.message)


@then('the rollout of "{name}" completes')
@refers(name=WORKLOAD)
@judges(WORKLOAD)
def _(expect: Expect, name: str) -> None:
    """All pods of the service run, and each of them has the newest template of the service."""
    expect.eventually(rollouts.is_rolled_out(name), within=timeouts.RUNS)
