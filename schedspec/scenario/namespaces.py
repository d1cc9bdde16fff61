"""The namespaces of a scenario: its own, and further ones for work whose name says so (`api.spaces`).

Each of them has what the pods and the scheduler need there: the account of pods, and the companions that have a
namespace, such as Kueue's LocalQueues.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence

from ..api import spaces
from ..api.client import Api, Object
from ..api.errors import ForeignObjectError, RejectedError
from ..api.kinds import SERVED, Ref
from ..clusters.protocol import SCENARIO
from ..observe.history import History
from .companions import Companions


class Namespaces:
    """The namespaces of one scenario, with the companions of its scheduler."""

    def __init__(
        self,
        api: Api,
        history: History,
        manager: str,
        companions: Companions,
        wait_for: Callable[[Sequence[tuple[Ref, Object]]], None],
    ) -> None:
        self._api, self._history, self._manager, self._companions = api, history, manager, companions
        self._wait_for = wait_for
        """Returns when the history shows applied objects."""
        self.further: list[str] = []
        """Names of the further namespaces, as the names of work begin: `team-b` of `team-b/train`."""

    def names(self) -> list[str]:
        """Return the names of all namespaces on the cluster."""
        return [self._name(space) for space in ("", *self.further)]

    def open(self) -> None:
        """Create the scenario's own namespace. Raises ForeignObjectError if it exists."""
        self._create(self._history.namespace)

    def use(self, space: str) -> None:
        """Create a further namespace before its first object. Raises ForeignObjectError if it exists."""
        if space not in self.further:
            self._create(self._name(space))
            self.further.append(space)
            self._apply((space, ref, obj) for ref, obj in self._companions.namespaced())

    def apply_companions(self, policy: str, without_node: str = "") -> None:
        """Apply the companions that are new or changed, in each namespace if they have one."""
        changed = self._companions.changed(self._history.now(), policy, without_node)
        everywhere = ("", *self.further)
        self._apply((it, ref, obj) for ref, obj in changed for it in everywhere[: None if _has_one(ref) else 1])

    def _apply(self, companions: Iterable[tuple[str, Ref, Object]]) -> None:
        done = []
        for space, ref, obj in companions:
            own = ref._replace(name=f"{space}/{ref.name}") if space else ref
            done.append((own, self._api.apply(copy.deepcopy(obj), self._manager, namespace=self._name(space))))
        self._wait_for(done)

    def _name(self, space: str) -> str:
        return spaces.real(self._history.namespace, f"{space}/" if space else "")[0]

    def _create(self, name: str) -> None:
        labels = {SCENARIO: self._history.namespace}
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        try:
            self._api.call("POST", "/api/v1/namespaces", body=body)
        except RejectedError as problem:
            if problem.status != 409:
                raise
            raise ForeignObjectError(
                f"the namespace {name}, which the scenario needs, exists already\n"
                f"  do next: kubectl get namespace {name} -o yaml (one of an earlier run will disappear)"
            ) from None
        account = {"name": "default", "namespace": name, "labels": labels}  # pods need the account at once
        self._api.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account}, self._manager)


def _has_one(ref: Ref) -> bool:
    return SERVED[ref.kind].namespaced
