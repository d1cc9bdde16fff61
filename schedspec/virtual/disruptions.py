"""Keep `status.disruptionsAllowed` of budgets in virtual time, as Kubernetes' disruption controller does.

1. A budget permits as many disruptions as it has healthy pods above the number that it requires.
2. `minAvailable` as a number is required as it is. A percentage, and `maxUnavailable`, count from the scale of the
   pods' controllers: here the pods that have not ended, because a state has no Deployments.
3. A controller without a scale, such as a Job, lets the calculation fail: the budget permits nothing.

A budget without a rule, as in a dump of an earlier version, keeps its status.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import msgspec

from ..scheduler.inputs import Input, ObjectGone, ObjectSeen
from ..scheduler.model import objects
from ..scheduler.model.matching import selector_matches
from ..scheduler.model.task import COMPLETED, Task, status_of

UNSCALED = frozenset({"DaemonSet", "Job", "Node"})
"""Kinds of controllers without the subresource `scale`."""

_SHARE = re.compile(r"(100|\d{1,2})%")


class GuardedPods:
    """One budget, and the pods that it covers."""

    def __init__(self, budget: objects.PodDisruptionBudget) -> None:
        self.budget = budget
        self.pods: dict[str, objects.Pod] = {}
        """By key; pods that have ended are left out."""

    def put(self, pod: objects.Pod) -> bool:
        """Keep a version of a pod. Return whether the budget's status may change."""
        if not selector_matches(self.budget.spec.selector, pod.metadata.labels or {}) or status_of(pod)[0] & COMPLETED:
            return self.pods.pop(pod.metadata.key, None) is not None
        self.pods[pod.metadata.key] = pod
        return True

    @property
    def allowed(self) -> int:
        """Return how many more pods the budget permits to disrupt."""
        spec, pods = self.budget.spec, self.pods.values()
        if spec.min_available is None and spec.max_unavailable is None:
            return self.budget.status.disruptions_allowed
        if not _is_valid(spec):
            return 0
        if isinstance(spec.min_available, int):
            required = spec.min_available
        else:
            controllers = [kind for kind in map(_controller, pods) if kind]
            if not UNSCALED.isdisjoint(controllers):
                return 0
            required = _share(spec.min_available or 0, len(controllers))
            if spec.max_unavailable is not None:
                required = max(len(controllers) - _share(spec.max_unavailable, len(controllers)), 0)
        return max(sum(map(_is_healthy, pods)) - required, 0)


class DisruptionController:
    """Follows the inputs of the core, and knows the budgets whose status is outdated."""

    def __init__(self) -> None:
        self._guarded: dict[str, dict[str, GuardedPods]] = {}
        """Namespace → budgets by key."""
        self._outdated: set[tuple[str, str]] = set()

    def observe(self, given: Input, tasks: Mapping[str, Task]) -> None:
        """Note one applied input; `tasks` are those of the core, for a new budget."""
        if not self._guarded and not (type(given) is ObjectSeen and given.kind == "PodDisruptionBudget"):
            return  # most clusters have no budgets
        match given:
            case ObjectSeen("PodDisruptionBudget", budget):
                self._guard(budget, tasks)
            case ObjectGone("PodDisruptionBudget", key):
                self._guarded.get(key.partition("/")[0], {}).pop(key, None)
            case ObjectSeen("Pod", pod) if pod.metadata.namespace in self._guarded:
                for key, guarded in self._guarded[pod.metadata.namespace].items():
                    if guarded.put(pod):
                        self._outdated.add((pod.metadata.namespace, key))
            case ObjectGone("Pod", name) if (space := name.partition("/")[0]) in self._guarded:
                for key, guarded in self._guarded[space].items():
                    if guarded.pods.pop(name, None) is not None:
                        self._outdated.add((space, key))

    def _guard(self, budget: objects.PodDisruptionBudget, tasks: Mapping[str, Task]) -> None:
        meta = budget.metadata
        known = self._guarded.setdefault(meta.namespace, {})
        if meta.key in known and known[meta.key].budget is budget:
            return  # the status is this controller's own
        known[meta.key] = guarded = GuardedPods(budget)
        for task in tasks.values():
            if task.namespace == meta.namespace:
                guarded.put(task.pod)
        self._outdated.add((meta.namespace, meta.key))

    def changed(self) -> list[objects.PodDisruptionBudget]:
        """Return the budgets whose status differs from what they permit now, each with its new status."""
        found = []
        for space, key in sorted(self._outdated):
            guarded = self._guarded[space].get(key)
            if guarded is not None and guarded.allowed != guarded.budget.status.disruptions_allowed:
                status = objects.PodDisruptionBudgetStatus(guarded.allowed)
                guarded.budget = msgspec.structs.replace(guarded.budget, status=status)
                found.append(guarded.budget)
        self._outdated.clear()
        return found


def _is_valid(spec: objects.PodDisruptionBudgetSpec) -> bool:
    """Whether Kubernetes accepts the rule of a budget."""
    rules = [rule for rule in (spec.min_available, spec.max_unavailable) if rule is not None]
    return len(rules) == 1 and (rules[0] >= 0 if isinstance(rules[0], int) else bool(_SHARE.fullmatch(rules[0])))


def _controller(pod: objects.Pod) -> str:
    """Return the kind of a pod's controller; empty without one."""
    return next((owner.kind for owner in pod.metadata.owner_references or () if owner.controller), "")


def _is_healthy(pod: objects.Pod) -> bool:
    if pod.metadata.deletion_timestamp is not None or pod.status.phase != "Running":
        return False
    return next((it.status == "True" for it in pod.status.conditions or () if it.type == "Ready"), True)


def _share(value: int | str, whole: int) -> int:
    """Return a number, or the share of the whole that a percentage is, rounded up."""
    return value if isinstance(value, int) else math.ceil(int(value.removesuffix("%")) * whole / 100)
