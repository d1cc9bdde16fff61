"""Protect foreign objects: decide which of them a scenario may change, and reject a change of any other."""

from __future__ import annotations

from collections.abc import Callable

from ..api.client import Api, Object
from ..api.errors import ForeignObjectError
from ..api.kinds import BUILT_IN_QUEUES, Kind, Ref
from ..clusters.protocol import SCENARIO
from ..observe.history import History
from .ownership import Ownership


class Foreign:
    """The foreign objects of one scenario.

    Args:
        api: The cluster.
        history: What the watches show.
        ownership: Which objects belong to the run.
        rename: Assigns an object a unique real name; returns False if the object must keep its name.
    """

    def __init__(self, api: Api, history: History, ownership: Ownership, rename: Callable[[Ref], bool]) -> None:
        self._api, self._history, self._ownership, self._rename = api, history, ownership, rename
        self.adopted: set[str] = set()
        """The cluster's own nodes that this scenario uses."""

    def changeable(self, ref: Ref, *, used: bool = False, made: bool = False) -> Object | None:
        """Return a foreign object that may be changed, or None if no foreign object has this name.

        Two kinds may be changed: on a cluster of ours, a queue that always exists; if it is only to be `used`, an
        adopted node. On a shared cluster, an object that is to be `made` gets a real name of its own.

        Raises:
            ForeignObjectError: any other foreign object.
        """
        if ref.namespace:
            return None  # any object in our namespace is ours
        before = self._history.now().get(ref.kind, ref.name) or self._unseen(ref)
        if before is None or (before["metadata"].get("labels") or {}).get(SCENARIO) == self._history.namespace:
            return None
        built_in = ref.kind == Kind.QUEUE and ref.name in BUILT_IN_QUEUES and not self._ownership.shared
        if built_in or (used and ref.kind == Kind.NODE and ref.name in self.adopted):
            return before
        adoptable = ref.kind == Kind.NODE and self._ownership.may_adopt(ref.name)
        if made and not adoptable and self._rename(ref):
            return None
        raise self._refusal(ref)

    def _refusal(self, ref: Ref) -> ForeignObjectError:
        if ref.kind == Kind.NODE and self._ownership.shared:
            todo = f"rename the node in the scenario, or use the existing one (--adopt-nodes {ref.name})"
        else:
            todo = f"rename the {ref.kind} in the scenario"
        return ForeignObjectError(
            f"{ref} exists and is not the scenario's ({SCENARIO} is not {self._history.namespace}): "
            f"it stays unchanged\n  do next: {todo}"
        )

    def _unseen(self, ref: Ref) -> Object | None:
        """Return a foreign object that the history does not cover."""
        if not self._ownership.shared:
            return None
        answer = self._api.raw("GET", ref.path())
        found: Object | None = self._api.decode(answer.data) if answer.status == 200 else None
        return found
