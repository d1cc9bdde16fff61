"""Checks of a workload's pods: whether they run, are bound, wait or are gone, and how many."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..api.kinds import Kind
from ..gherkin import quantities
from ..observe import queries
from ..observe import view as views
from ..observe.expect import Check, Outcome
from ..observe.history import Object, View
from .workloads import about, held, in_queue, of_known, since, tally, wanted_pods


@of_known
def runs(workload: str) -> Check:
    """Every pod that the workload wants is Running."""

    def check(view: View) -> Outcome:
        pods, wanted = views.pods_of(view, workload), wanted_pods(view, workload)
        if wanted is None:
            return Outcome(False, f"{workload} runs", "it is gone", about(view, workload))
        if not wanted:
            return Outcome(False, f"{workload} runs", "it wants no pods: replicas 0", about(view, workload))
        running = [pod for pod in pods if views.runs(pod)]
        expected = f"all {wanted} pods of {workload} run" if wanted != 1 else f"the pod of {workload} runs"
        outcome = Outcome(len(running) == wanted, expected, tally(pods, wanted), about(view, workload))
        return in_queue(workload, view, outcome)

    return check


@of_known
def count_runs(workload: str, many: int | str) -> Check:
    """So many of the workload's pods are Running: `exactly 2`, `between 2 and 4`, `half of the`."""
    return _count(workload, many, "run", lambda _, pods: sum(map(views.runs, pods)))


@of_known
def is_bound(workload: str) -> Check:
    """Every pod that the workload wants has a node."""

    def check(view: View) -> Outcome:
        pods, wanted = views.pods_of(view, workload), wanted_pods(view, workload)
        bound = [pod for pod in pods if pod["spec"].get("nodeName") and not views.is_leaving(pod)]
        outcome = Outcome(len(bound) == wanted, f"{workload} is bound", tally(pods, wanted), about(view, workload))
        return in_queue(workload, view, outcome)

    return check


@of_known
def waits(workload: str) -> Check:
    """The workload exists and none of its pods has a node. The pods need not exist yet: that depends on admission."""

    def check(view: View) -> Outcome:
        pods = views.pods_of(view, workload)
        exists = wanted_pods(view, workload) is not None
        bound = [pod for pod in pods if pod["spec"].get("nodeName") and not views.is_leaving(pod)]
        seen = (since(view, bound) if bound else tally(pods)) if exists else "it is gone"
        return Outcome(exists and not bound, f"no pod of {workload} has a node", seen, about(view, workload))

    return check


@of_known
def count_waits(workload: str, many: int | str) -> Check:
    """So many of the workload's pods have no node."""
    return _count(workload, many, "wait", lambda _, pods: sum(map(views.waits, pods)))


@of_known
def count_replaced(workload: str, many: int | str) -> Check:
    """So many of the workload's pods have had a successor of the same name since the scenario began."""
    return _count(workload, many, "are replaced", lambda view, _: _replaced(view, workload))


def _replaced(view: View, workload: str) -> int:
    uids: dict[str, set[str]] = {}
    for version in view.versions(Kind.POD):
        if views.workload_of(version.object) == workload:
            uids.setdefault(version.ref.name, set()).add(version.uid)
    return sum(len(found) > 1 for found in uids.values())


@of_known
def count_evicted(workload: str, many: int | str) -> Check:
    """So many of the workload's pods have been evicted since the scenario began."""
    return _count(
        workload, many, "are evicted", lambda view, _: len(queries.of_workload(queries.evictions(view), workload))
    )


@of_known
def are_made(workload: str) -> Check:
    """The workload has as many pods as it wants, unless none of them has a node.

    A `batch/v1` Job re-creates a lost pod after ten seconds.
    """

    def check(view: View) -> Outcome:
        pods, wanted = (
            [pod for pod in views.pods_of(view, workload) if not views.is_leaving(pod)],
            wanted_pods(view, workload),
        )
        ok = not held(pods) or len(pods) >= (wanted or 0)
        return Outcome(ok, f"the lost pods of {workload} are re-created", tally(pods, wanted), about(view, workload))

    return check


def _count(workload: str, many: int | str, does: str, number: Callable[[View, list[Object]], int]) -> Check:
    words = f"exactly {many}" if isinstance(many, int) else many
    one = words.endswith(" 1")
    verb = does.replace("are ", "is ") if "are " in does else f"{does}s"
    expected = f"{words} {f'pod of {workload} {verb}' if one else f'pods of {workload} {does}'}"

    def check(view: View) -> Outcome:
        pods, wanted = views.pods_of(view, workload), wanted_pods(view, workload) or 0
        try:
            least, most = quantities.bounds(words, wanted)
        except ValueError as problem:
            return Outcome(False, expected, str(problem), about(view, workload), hopeless=0.0)
        if not least and most >= wanted > 0:
            return Outcome(
                False, expected, f"it wants {wanted}: this always holds", about(view, workload), hopeless=0.0
            )
        found = number(view, pods)
        seen = f"{found} {does}" if "are " in does else tally(pods)
        return Outcome(least <= found <= most, expected, seen, about(view, workload))

    return check


@of_known
def is_whole(workload: str) -> Check:
    """All of the workload's pods run, or none of them has a node."""

    def check(view: View) -> Outcome:
        pods, wanted = views.pods_of(view, workload), wanted_pods(view, workload)
        held = [pod for pod in pods if pod["spec"].get("nodeName") and not views.is_leaving(pod)]
        whole = not held or sum(map(views.runs, pods)) == wanted
        expected = f"all pods of {workload} run, or none has a node"
        return Outcome(whole, expected, tally(pods, wanted), about(view, workload))

    return check


def exactly_run(names: Sequence[str]) -> Check:
    """Exactly these pods of the scenario run."""

    def check(view: View) -> Outcome:
        running = views.names(filter(views.runs, view.mine(Kind.POD)))
        refs = tuple(view.history.ref(Kind.POD, name) for name in names)
        return Outcome(running == sorted(names), f"{', '.join(names)} run", ", ".join(running) or "none runs", refs)

    return check


def some_run(number: int, workloads: Sequence[str]) -> Check:
    """All pods of exactly `number` of these workloads run, and no pod of the other workloads has a node."""

    def check(view: View) -> Outcome:
        whole = [is_whole(name)(view) for name in workloads]
        running = [name for name in workloads if runs(name)(view).ok]
        seen = "; ".join(f"{name}: {outcome.seen}" for name, outcome in zip(workloads, whole, strict=True))
        ok = len(running) == number and all(outcome.ok for outcome in whole)
        verb = "runs" if number == 1 else "run"
        expected = f"exactly {number} of {', '.join(workloads)} {verb}, the others have no node"
        return Outcome(ok, expected, seen, tuple(ref for outcome in whole for ref in outcome.about))

    return check


@of_known
def has_run(workload: str) -> Check:
    """A pod of the workload was seen Running."""

    def check(view: View) -> Outcome:
        started = queries.of_workload(queries.starts(view), workload)
        have = "has" if len(started) == 1 else "have"
        seen = f"{len(started)} of its pods {have}" if started else "none of its pods has"
        return Outcome(bool(started), f"{workload} has run", seen, about(view, workload))

    return check


@of_known
def has_no_pods(workload: str) -> Check:
    """The workload exists and has no pods."""

    def check(view: View) -> Outcome:
        pods = views.pods_of(view, workload)
        exists = wanted_pods(view, workload) is not None
        seen = tally(pods) if exists else "it is gone"
        return Outcome(exists and not pods, f"{workload} has no pods", seen, about(view, workload))

    return check


def can_finish(workload: str) -> Check:
    """A pod of the workload runs, so that it can finish."""

    def check(view: View) -> Outcome:
        pods = views.pods_of(view, workload)
        running = any(map(views.runs, pods))
        return Outcome(running, f"a pod of {workload} runs, and can finish", tally(pods), about(view, workload))

    return check


def can_end(workload: str, many: str) -> Check:
    """So many pods of the workload run, and can end."""

    def check(view: View) -> Outcome:
        pods = views.pods_of(view, workload)
        running = sum(map(views.runs, pods))
        try:
            least = quantities.bounds(many, running)[0]
        except ValueError:
            least = running + 1
        expected = f"{many} pods of {workload} run, and can end"
        return Outcome(running >= max(least, 1), expected, tally(pods), about(view, workload))

    return check


def have_ended(pods: Sequence[Object]) -> Check:
    """Each of these pods has ended, or a container of it has ended and is restarted in its pod."""

    def restarts(pod: Object) -> int:
        return sum(int(it.get("restartCount", 0)) for it in (pod.get("status") or {}).get("containerStatuses") or ())

    def has_ended(view: View, pod: Object) -> bool:
        versions = view.versions(Kind.POD, str(pod["metadata"]["name"]))
        own = [version for version in versions if version.uid == pod["metadata"]["uid"]]
        return any(
            version.change == "gone" or views.is_over(version.object) or restarts(version.object) > restarts(pod)
            for version in own
        )

    def check(view: View) -> Outcome:
        left = [str(pod["metadata"]["name"]) for pod in pods if not has_ended(view, pod)]
        return Outcome(not left, "the pods end", f"not yet: {', '.join(left)}" if left else "they ended")

    return check


def one_can_finish(workloads: Sequence[str]) -> Check:
    """A pod of at least one of the workloads runs, so that it can finish."""

    def check(view: View) -> Outcome:
        found = [can_finish(name)(view) for name in workloads]
        seen = "; ".join(f"{name}: {outcome.seen}" for name, outcome in zip(workloads, found, strict=True))
        expected = f"one of {', '.join(workloads)} runs, and can finish"
        refs = tuple(ref for outcome in found for ref in outcome.about)
        return Outcome(any(outcome.ok for outcome in found), expected, seen, refs)

    return check


def pod_can_finish(name: str) -> Check:
    """The pod of that name runs, so that it can finish."""

    def check(view: View) -> Outcome:
        pod = view.get(Kind.POD, name)
        seen = f"there is no pod {name}" if pod is None else views.summary(Kind.POD, pod)
        running = pod is not None and views.runs(pod)
        hopeless = 0.0 if pod is not None and views.is_over(pod) else None
        return Outcome(running, f"pod {name} runs, and can finish", seen, (view.history.ref(Kind.POD, name),), hopeless)

    return check


@of_known
def is_done(workload: str) -> Check:
    """All remaining pods of the workload ran to completion."""

    def check(view: View) -> Outcome:
        left = [pod for pod in views.pods_of(view, workload) if not views.is_over(pod)]
        return Outcome(not left, f"{workload} completes", tally(left), about(view, workload))

    return check


def is_gone(workload: str) -> Check:
    """No pod of the workload remains."""

    def check(view: View) -> Outcome:
        left = views.pods_of(view, workload)
        return Outcome(not left, f"{workload} is gone with its pods", tally(left), about(view, workload))

    return check


def pod_waits(name: str) -> Check:
    """The pod with this name exists and has no node."""

    def check(view: View) -> Outcome:
        pod = view.get(Kind.POD, name)
        seen = f"there is no pod {name}" if pod is None else views.summary(Kind.POD, pod)
        return Outcome(
            pod is not None and views.waits(pod), f"pod {name} waits", seen, (view.history.ref(Kind.POD, name),)
        )

    return check
