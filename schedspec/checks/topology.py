"""Checks of the network topology of a workload's pods: in which racks or spines they are, and in how many."""

from __future__ import annotations

from ..api.kinds import LEVELS, Kind
from ..observe import view as views
from ..observe.expect import Check, Outcome
from ..observe.history import Object, View
from .workloads import about, of_known


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
def is_in_several(workload: str, level: str, number: int) -> Check:
    """The pods of the workload that have a node are in exactly `number` racks or spines."""

    def check(view: View) -> Outcome:
        found = domains(view, workload, level)
        expected = f"the pods of {workload} are in {views.count(number, level)}"
        return Outcome(len(found) == number, expected, _seen(found, level), about(view, workload))

    return check


def domains(view: View, workload: str, level: str) -> dict[str, int]:
    """Return how many pods of a workload are in each rack or spine; the empty name counts those in none."""
    found: dict[str, int] = {}
    for pod in views.pods_of(view, workload):
        node: Object | None = view.get(Kind.NODE, pod["spec"].get("nodeName", ""))
        if node is not None and not views.is_leaving(pod):
            name = str((node["metadata"].get("labels") or {}).get(LEVELS[level], ""))
            found[name] = found.get(name, 0) + 1
    return dict(sorted(found.items()))


def _seen(found: dict[str, int], level: str) -> str:
    parts = [f"{number} in {f'{level} {name}' if name else f'no {level}'}" for name, number in found.items()]
    return ", ".join(parts) or "none of its pods has a node"
