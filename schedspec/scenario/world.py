"""One scenario's objects: made from templates, changed, told to finish, and taken away again. Their only owner.

Namespaced objects live in a namespace of the scenario's own; queues, priority classes and nodes have the cluster to
themselves and keep their plain names. A call returns when the history shows what it did.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from ..api import timeouts
from ..api.client import JSON_PATCH, MERGE, Api, Object, run_in_pod
from ..api.errors import HarnessError, RejectedError, Unmet
from ..api.kinds import Kind, Ref, kind_of
from ..observe.expect import Expect, Outcome
from ..observe.history import History, View
from . import nodes
from .cleanup import SCENARIO, Cleanup
from .restore import borrow
from .templates import Rendered, Templates


class TakesPolicy(Protocol):
    """A scheduler, as far as the world is concerned."""

    def use_policy(self, text: str) -> str:
        """Put a policy into force; its sha256."""


class World:
    """One scenario's objects. Not thread-safe: a scenario has one thread."""

    def __init__(
        self, api: Api, history: History, expect: Expect, templates: Templates, scheduler: TakesPolicy | None
    ) -> None:
        self.namespace = history.namespace
        self.policy = ""
        """The text of the policy that this scenario put into force; empty for the run's own."""
        self.history, self.expect = history, expect
        self._api, self._templates, self._scheduler = api, templates, scheduler
        self._manager = f"schedspec-{self.namespace}"
        self._cleanup = Cleanup(api, history)

    def open(self) -> None:
        """Make the namespace, after a look around: nothing may be left of anybody else.

        Raises DirtyClusterError.
        """
        self._cleanup.require_empty(self.expect)
        labels = {SCENARIO: self.namespace}
        meta = {"name": self.namespace, "labels": labels}
        self._api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": meta}, self._manager)
        account = {"name": "default", "namespace": self.namespace, "labels": labels}  # pods need it at once
        self._api.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account}, self._manager)

    def close(self, expect: Expect) -> None:
        """Take everything away by force. Raises DirtyClusterError, which names what would not go."""
        self._cleanup.empty(expect)

    def use_policy(self, name: str) -> None:
        """Put templates/policies/`name`.yaml into force. Raises PolicyRefusedError, TemplateError."""
        self.policy = self._templates.policy(name)
        if self._scheduler is not None:
            self._scheduler.use_policy(self.policy)

    def render(self, template: str, **parameters: object) -> list[Rendered]:
        """The objects of templates/`template`.yaml.j2, not applied. Raises TemplateError."""
        return self._templates.render(template, {"namespace": self.namespace, **parameters})

    def apply(self, template: str, **parameters: object) -> list[Ref]:
        """Render and apply; what was applied. Raises TemplateError, RejectedError."""
        return self.apply_all([(template, parameters)])

    def apply_all(self, wanted: Iterable[tuple[str, Mapping[str, object]]]) -> list[Ref]:
        """Several templates; returns when all are shown."""
        done: list[tuple[Ref, Object]] = []
        for template, parameters in wanted:
            done += [self._apply(rendered) for rendered in self.render(template, **parameters)]
        self._shown(done)
        return [ref for ref, _ in done]

    def add_nodes(self, rows: Sequence[Mapping[str, object]]) -> list[str]:
        """Simulated nodes, one for each row of parameters of templates/node.yaml.j2; returns when all are Ready.

        Raises DirtyClusterError if a pod is bound to one of them already.
        """
        names = [ref.name for ref in self.apply_all([("node", row) for row in rows]) if ref.kind == Kind.NODE]
        nodes.require_empty(self.history.now(), names)
        self.expect.eventually(nodes.ready(names), within=timeouts.PHASE)
        return names

    def adopt_real_nodes(self) -> list[str]:
        """The cluster's own nodes belong to this scenario. Raises HarnessError if there are none, DirtyClusterError."""
        names = nodes.real(self.history.now())
        if not names:
            raise HarnessError("the cluster has no real nodes: name simulated ones, or run this on kind")
        return self._adopt(names)

    def _adopt(self, names: list[str]) -> list[str]:
        nodes.require_empty(self.history.now(), names)
        for name in names:
            self.patch(Kind.NODE, name, {"metadata": {"labels": {nodes.WORLD: "true"}}})
            self._cleanup.adopted.append(name)
        return names

    def adopt_nodes_with_cards(self, model: str, number: int) -> list[str]:
        """The cluster's own nodes with so many cards of that model belong to this scenario; none if there are none."""
        view = self.history.now()
        names = [name for name in nodes.real(view) if nodes.cards(view.get(Kind.NODE, name)) == (model, number)]
        return self._adopt(names[:1])

    def remove_node(self, name: str) -> None:
        """A node goes for good, and by force every pod that was on it."""
        on_it = [pod for pod in self.history.now().mine(Kind.POD) if pod["spec"].get("nodeName") == name]
        self._api.delete(self.history.ref(Kind.NODE, name).path())
        for pod in on_it:
            self._api.delete(self.history.ref(Kind.POD, str(pod["metadata"]["name"])).path(), grace=0)

    def delete(self, kind: Kind, name: str) -> None:
        """As a user does: gracefully; returns when the deletion is seen to have begun. Raises RejectedError."""
        ref = self.history.ref(kind, name)
        before = len(self.history)
        if not self._api.delete(ref.path()):
            raise RejectedError(f"there is no {ref} to delete", 404, "NotFound")

        def begun(_: View) -> Outcome:
            said = [it for it in self.history.story(ref) if it.seq > before]
            ok = any(it.change == "gone" or it.object["metadata"].get("deletionTimestamp") for it in said)
            return Outcome(ok, f"{ref} is being deleted", "its watch has not shown it", (ref,))

        self.expect.eventually(begun, within=timeouts.SHOWN)

    def patch(self, kind: Kind, name: str, change: Object, *, subresource: str = "") -> None:
        """Merge `change` into an object. Raises RejectedError."""
        ref = self.history.ref(kind, name)
        self._remember(ref)
        answer = self._api.call("PATCH", ref.path(subresource), body=change, content_type=MERGE)
        self._shown([(ref, answer)])

    def replace(self, kind: Kind, name: str, pointer: str, value: object) -> None:
        """Set one field to exactly `value` (`pointer` is a JSON pointer: `/spec/deserved`). Raises RejectedError."""
        ref = self.history.ref(kind, name)
        self._remember(ref)
        body = [{"op": "add", "path": pointer, "value": value}]
        answer = self._api.call("PATCH", ref.path(), body=body, content_type=JSON_PATCH)
        self._shown([(ref, answer)])

    def scale(self, kind: Kind, name: str, replicas: int) -> None:
        """Change how many replicas a workload has. Raises RejectedError."""
        self.patch(kind, name, {"spec": {"replicas": replicas}})

    def finish(self, pod: str, *, exit_code: int | None = None) -> None:
        """Tell a running pod to come to its end, and with which exit code if it is simulated. Raises RejectedError."""
        found = self.history.now().get(Kind.POD, pod)
        node = found and self.history.now().get(Kind.NODE, found["spec"].get("nodeName", ""))
        if node and nodes.SIMULATED not in (node["metadata"].get("annotations") or {}):
            run_in_pod(self._api, self.namespace, pod, ["/worker", "finish"])
            return
        told = {"schedspec.dev/run-for": "0s"}
        told |= {"schedspec.dev/exit-code": str(exit_code)} if exit_code is not None else {}
        self.patch(Kind.POD, pod, {"metadata": {"annotations": told}})

    def create(self, obj: Object) -> Object:
        """POST an object that no template makes (a Command), into the scenario's namespace if it names none.

        Raises RejectedError.
        """
        kind = kind_of(obj)
        meta = {"namespace": self.namespace, **obj["metadata"], "labels": {SCENARIO: self.namespace}}
        resource = self._api.resource(obj["apiVersion"], obj["kind"])
        answer = self._api.call("POST", resource.path(namespace=meta["namespace"]), body={**obj, "metadata": meta})
        if kind is not None:
            self._shown([(Ref(kind, answer["metadata"]["name"], answer["metadata"].get("namespace", "")), answer)])
        return answer

    def _apply(self, rendered: Rendered) -> tuple[Ref, Object]:
        obj, kind = rendered.object, kind_of(rendered.object)
        name = str(obj["metadata"]["name"])
        if kind is None:
            raise HarnessError(f"{rendered.excerpt('kind')}: {obj['kind']} is not a kind that is watched")
        ref = self.history.ref(kind, name)
        if not self._remember(ref):
            obj["metadata"].setdefault("labels", {})[SCENARIO] = self.namespace
        try:
            return ref, self._api.apply(obj, self._manager, namespace=self.namespace)
        except RejectedError as problem:
            places = "".join(f"\n  {field}: {rendered.excerpt(field)}" for field in dict.fromkeys(problem.fields))
            text = f"the API server refused {ref}: {problem.status} {problem.reason}\n  {problem.message}"
            where = places or f"\n  {rendered.excerpt('metadata')}"
            raise RejectedError(text + where, problem.status, problem.reason, problem.message, problem.fields) from None

    def _remember(self, ref: Ref) -> bool:
        """Keep an object that is not ours (the queue `default`, a real node) as it was. True if it is such a one."""
        before = self.history.now().get(ref.kind, ref.name)
        foreign = before is not None and (before["metadata"].get("labels") or {}).get(SCENARIO) != self.namespace
        lasting = not ref.namespace and ref.kind != Kind.NODE  # of a node, only its label is changed
        if foreign and before is not None and lasting and ref not in self._cleanup.borrowed:
            borrow(self._api, ref, before)
            self._cleanup.borrowed.add(ref)
        return foreign

    def _shown(self, done: Sequence[tuple[Ref, Object]]) -> None:
        """Return when the history has each object in that state or a later one."""

        def all_of_them(_: View) -> Outcome:
            missing = [ref for ref, obj in done if not self._has(ref, int(obj["metadata"]["resourceVersion"]))]
            text = ", ".join(map(str, missing))
            return Outcome(not missing, "the watch shows what was applied", f"not yet: {text}", tuple(missing))

        try:
            self.expect.eventually(all_of_them, within=timeouts.SHOWN)
        except Unmet as problem:
            raise HarnessError(f"the API server took it, but its watch does not show it: {problem.seen}") from None

    def _has(self, ref: Ref, version: int) -> bool:
        return any(int(it.object["metadata"]["resourceVersion"]) >= version for it in self.history.story(ref)[::-1])
