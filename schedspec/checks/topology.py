"""Check where the pods of a workload are: on which nodes, racks or spines, on how many, and how full these are."""

from __future__ import annotations

from collections.abc import Callable

from ..api.kinds import LEVELS, Kind
from ..monitors.amounts import minus, of_pod, parse, total
from ..observe import view as views
from ..observe.expect import Check, Outcome
from ..observe.history import Object, View
from .workloads import about, held, of_known, tally, wanted_pods

NODE = "node"
"""The level of the network below the rack: each node is a domain of its own."""


@of_known
def is_in(workload: str, level: str, name: str = "") -> Check:
    """All pods of the workload that have a node are in one rack or spine; with `name`, in the one that `name` names.

    A workload without a pod on a node fails the check.
    """

    def check(view: View) -> Outcome:
        found = domains(view, workload, level)
        expected = f"every pod of {workload} is in {f'{level} {name}' if name else f'one {level}'}"
        ok = list(found) == [name] if name else len(found) == 1 and "" not in found
        return Outcome(ok, expected, _seen(found, level), about(view, workload))

    return check


@of_known
def is_in_several(workload: str, level: str, number: int, *, evenly: bool = False) -> Check:
    """The pods of the workload that have a node are in exactly `number` domains of a level.

    `evenly` requires that no domain has two pods more than another.
    """

    def check(view: View) -> Outcome:
        found = domains(view, workload, level)
        how = "spread over" if evenly else _at(level)
        expected = f"the pods of {workload} are {how} {views.count(number, level)}"
        even = not evenly or max(found.values(), default=0) - min(found.values(), default=0) < 2
        return Outcome(len(found) == number and even, expected, _seen(found, level), about(view, workload))

    return check


@of_known
def is_packed(workload: str, number: int) -> Check:
    """The pods of the workload are on exactly `number` nodes, and at most one of them has room for another pod."""

    def check(view: View) -> Outcome:
        found, pods = domains(view, workload, NODE), held(views.pods_of(view, workload))
        roomy = [name for name in found if pods and _has_room(view, name, pods[0])]
        expected = f"the pods of {workload} are packed on {views.count(number, NODE)}"
        seen = _seen(found, NODE) + (f"; room for another is on {', '.join(roomy)}" if roomy else "")
        return Outcome(len(found) == number and len(roomy) < 2, expected, seen, about(view, workload))

    return check


@of_known
def runs_on(workload: str, is_right: Callable[[Object], bool], where: str) -> Check:
    """Every pod that the workload wants, or the pod of that name, runs on a node that is right. `where` names these.

    A node of the scenario is elsewhere.
    """

    def check(view: View) -> Outcome:
        nodes = [version.object for version in view.versions(Kind.NODE)]
        if nodes and all(map(is_right, nodes)):
            text = f"each node is one of {where}, so that this says nothing; write that {workload} runs"
            return Outcome(False, f"{workload} runs on {where}", text, hopeless=0.0)
        pod = view.get(Kind.POD, workload)
        pods, wanted = views.pods_of(view, workload) or ([pod] if pod else []), wanted_pods(view, workload)
        of_pod = {str(pod["metadata"]["name"]): view.get(Kind.NODE, pod["spec"].get("nodeName", "")) for pod in pods}
        elsewhere = [
            f"{name} is on {node['metadata']['name']}" for name, node in of_pod.items() if node and not is_right(node)
        ]
        ok = bool(wanted) and sum(map(views.runs, pods)) == wanted and not elsewhere
        return Outcome(
            ok, f"{workload} runs on {where}", "; ".join([tally(pods, wanted), *elsewhere]), about(view, workload)
        )

    return check


def are_free(nodes: list[str]) -> Check:
    """No pod of the scenario is on one of these nodes."""

    def check(view: View) -> Outcome:
        pods = [pod for pod in view.mine(Kind.POD) if pod["spec"].get("nodeName") in nodes and not views.is_over(pod)]
        seen = ", ".join(f"{pod['metadata']['name']} on {pod['spec']['nodeName']}" for pod in pods) or "no pod"
        refs = tuple(view.history.ref(Kind.NODE, name) for name in nodes)
        return Outcome(not pods, f"no pod is on {', '.join(nodes)}", seen, refs)

    return check


def domains(view: View, workload: str, level: str) -> dict[str, int]:
    """Return how many pods of a workload are in each domain of a level; the empty name counts those in none."""
    found: dict[str, int] = {}
    for pod in views.pods_of(view, workload):
        node: Object | None = view.get(Kind.NODE, pod["spec"].get("nodeName", ""))
        if node is not None and not views.is_leaving(pod):
            meta = node["metadata"]
            name = str(meta["name"] if level == NODE else (meta.get("labels") or {}).get(LEVELS[level], ""))
            found[name] = found.get(name, 0) + 1
    return dict(sorted(found.items()))


def _has_room(view: View, name: str, pod: Object) -> bool:
    """Whether the node could hold another pod with the requests of this one."""
    on_it = (it for it in view.all(Kind.POD) if it["spec"].get("nodeName") == name and not views.is_over(it))
    node = view.get(Kind.NODE, name) or {}
    free = minus(parse((node.get("status") or {}).get("allocatable")), total(map(of_pod, on_it)))
    return all(free.get(resource, 0) >= amount for resource, amount in of_pod(pod).items())


def _at(level: str) -> str:
    return "on" if level == NODE else "in"


def _seen(found: dict[str, int], level: str) -> str:
    at = _at(level)
    parts = [f"{number} {at} {f'{level} {name}' if name else f'no {level}'}" for name, number in found.items()]
    return ", ".join(parts) or "none of its pods has a node"
