"""One scenario's objects: made from templates, changed, told to finish, and taken away again. Their only owner.

Namespaced objects live in a namespace of the scenario's own; queues, priority classes and nodes have the cluster to
themselves and keep their plain names. A call returns when the history shows what it did.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from ..api import timeouts
from ..api.client import JSON_PATCH, MERGE, Api, Object, run_in_pod
from ..api.errors import ForeignObjectError, HarnessError, RejectedError, Unmet
from ..api.kinds import BUILT_IN_QUEUES, Kind, Ref, kind_of
from ..clusters.protocol import SCENARIO
from ..observe.expect import Expect, Outcome
from ..observe.history import History, View
from . import nodes
from .cleanup import Cleanup
from .ownership import TAINT, Ownership
from .restore import at, borrow
from .templates import Rendered, Templates


class TakesPolicy(Protocol):
    """A scheduler, as far as the world is concerned."""

    def use_policy(self, text: str) -> str:
        """Put a policy into force; its sha256."""


class World:
    """One scenario's objects. Not thread-safe: a scenario has one thread."""

    def __init__(
        self,
        api: Api,
        history: History,
        expect: Expect,
        templates: Templates,
        scheduler: TakesPolicy | None,
        *,
        ownership: Ownership,
    ) -> None:
        self.namespace = history.namespace
        self.policy = ""
        """The text of the policy that this scenario put into force; empty for the run's own."""
        self.history, self.expect = history, expect
        self._api, self._templates, self._scheduler = api, templates, scheduler
        self._manager = f"schedspec-{self.namespace}"
        self._ownership = ownership
        self._adopted: set[str] = set()
        """The cluster's own nodes that this scenario uses."""
        self._cleanup = Cleanup(api, history)

    def open(self) -> None:
        """Make the namespace, after a look around: nothing may be left of anybody else.

        Raises DirtyClusterError, ForeignObjectError.
        """
        self._cleanup.require_empty(self.expect)
        labels = {SCENARIO: self.namespace}
        self._make_namespace(labels)
        account = {"name": "default", "namespace": self.namespace, "labels": labels}  # pods need it at once
        self._api.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account}, self._manager)

    def _make_namespace(self, labels: Object) -> None:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace, "labels": labels}}
        try:
            self._api.call("POST", "/api/v1/namespaces", body=body)
        except RejectedError as problem:
            if problem.status != 409:
                raise
            raise ForeignObjectError(
                f"the namespace {self.namespace} exists, and the scenario was about to make it\n"
                f"  do next: kubectl get namespace {self.namespace} -o yaml (one of an earlier run goes by itself)"
            ) from None

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
        """Several templates; returns when all are shown. Nothing is applied if one of them must not be.

        Raises TemplateError, RejectedError, ForeignObjectError.
        """
        all_rendered = [it for template, parameters in wanted for it in self.render(template, **parameters)]
        foreign = [self._foreign(self._ref_of(rendered)) for rendered in all_rendered]
        done = [self._apply(rendered, before) for rendered, before in zip(all_rendered, foreign, strict=True)]
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
        names = self._real_nodes()
        if not names:
            raise HarnessError(
                "the cluster has no real nodes that scenarios may use\n"
                "  do next: name some (--adopt-nodes NAME,...), or run this on kind"
                if self._ownership.shared
                else "the cluster has no real nodes: name simulated ones, or run this on kind"
            )
        return self._adopt(names)

    def _real_nodes(self) -> list[str]:
        return [name for name in nodes.real(self.history.now()) if self._ownership.may_adopt(name)]

    def _adopt(self, names: list[str]) -> list[str]:
        view = self.history.now()
        nodes.require_empty(view, names)
        self._adopted.update(names)
        for name in names:
            change: Object = {"metadata": {"labels": {nodes.WORLD: "true"}}}
            node = view.get(Kind.NODE, name)
            if self._ownership.shared and node is not None:
                change["spec"] = {"taints": [*(node["spec"].get("taints") or ()), TAINT]}
            self.patch(Kind.NODE, name, change)
        return names

    def adopt_nodes_with_cards(self, model: str, number: int) -> list[str]:
        """The cluster's own nodes with so many cards of that model belong to this scenario; none if there are none."""
        view = self.history.now()
        names = [name for name in self._real_nodes() if nodes.cards(view.get(Kind.NODE, name)) == (model, number)]
        return self._adopt(names[:1])

    def remove_node(self, name: str) -> None:
        """A node goes for good, and by force every pod that was on it. Raises ForeignObjectError."""
        self._require_own(self.history.ref(Kind.NODE, name))
        on_it = [pod for pod in self.history.now().mine(Kind.POD) if pod["spec"].get("nodeName") == name]
        self._api.delete(self.history.ref(Kind.NODE, name).path())
        for pod in on_it:
            self._api.delete(self.history.ref(Kind.POD, str(pod["metadata"]["name"])).path(), grace=0)

    def delete(self, kind: Kind, name: str) -> None:
        """As a user does: gracefully; returns when the deletion is seen to have begun.

        Raises RejectedError, ForeignObjectError.
        """
        ref = self.history.ref(kind, name)
        self._require_own(ref)
        before = len(self.history)
        if not self._api.delete(ref.path()):
            raise RejectedError(f"there is no {ref} to delete", 404, "NotFound")

        def begun(_: View) -> Outcome:
            said = [it for it in self.history.story(ref) if it.seq > before]
            ok = any(it.change == "gone" or it.object["metadata"].get("deletionTimestamp") for it in said)
            return Outcome(ok, f"{ref} is being deleted", "its watch has not shown it", (ref,))

        self.expect.eventually(begun, within=timeouts.SHOWN)

    def patch(self, kind: Kind, name: str, change: Object, *, subresource: str = "") -> None:
        """Merge `change` into an object. Raises RejectedError, ForeignObjectError."""
        ref = self.history.ref(kind, name)
        if before := self._foreign(ref, used=True):
            self._borrow(ref, before, change, subresource)
        answer = self._api.call("PATCH", ref.path(subresource), body=change, content_type=MERGE)
        self._shown([(ref, answer)])

    def replace(self, kind: Kind, name: str, pointer: str, value: object) -> None:
        """Set one field to exactly `value` (`pointer` is a JSON pointer: `/spec/deserved`).

        Raises RejectedError, ForeignObjectError.
        """
        ref = self.history.ref(kind, name)
        if before := self._foreign(ref, used=True):
            self._borrow(ref, before, at(pointer, value, before))
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

        Raises RejectedError, ForeignObjectError where it is an order to a queue of others.
        """
        kind = kind_of(obj)
        target = obj.get("target") or {}
        if self._ownership.shared and target.get("kind") == "Queue":
            self._require_own(Ref(Kind.QUEUE, target["name"]))
        meta = {"namespace": self.namespace, **obj["metadata"], "labels": {SCENARIO: self.namespace}}
        resource = self._api.resource(obj["apiVersion"], obj["kind"])
        answer = self._api.call("POST", resource.path(namespace=meta["namespace"]), body={**obj, "metadata": meta})
        if kind is not None:
            self._shown([(Ref(kind, answer["metadata"]["name"], answer["metadata"].get("namespace", "")), answer)])
        return answer

    def _ref_of(self, rendered: Rendered) -> Ref:
        kind, meta = kind_of(rendered.object), rendered.object["metadata"]
        if kind is None:
            raise HarnessError(f"{rendered.excerpt('kind')}: {rendered.object['kind']} is not a kind that is watched")
        ref = self.history.ref(kind, str(meta["name"]))
        if ref.namespace and meta.get("namespace", ref.namespace) != ref.namespace:
            raise ForeignObjectError(
                f"{rendered.excerpt('metadata.namespace')}: {ref} would be made in a namespace of others\n"
                "  do next: write `namespace: {{ namespace }}`"
            )
        return ref

    def _apply(self, rendered: Rendered, before: Object | None) -> tuple[Ref, Object]:
        obj, ref = rendered.object, self._ref_of(rendered)
        if before is not None:
            self._borrow(ref, before, {key: value for key, value in obj.items() if key not in ("apiVersion", "kind")})
        else:
            obj["metadata"].setdefault("labels", {})[SCENARIO] = self.namespace
            self._ownership.keep_apart(obj)
        try:
            return ref, self._api.apply(obj, self._manager, namespace=self.namespace)
        except RejectedError as problem:
            places = "".join(f"\n  {field}: {rendered.excerpt(field)}" for field in dict.fromkeys(problem.fields))
            text = f"the API server refused {ref}: {problem.status} {problem.reason}\n  {problem.message}"
            where = places or f"\n  {rendered.excerpt('metadata')}"
            raise RejectedError(text + where, problem.status, problem.reason, problem.message, problem.fields) from None

    def _foreign(self, ref: Ref, *, used: bool = False) -> Object | None:
        """What is not this scenario's and may be changed all the same; None if it is its own, or not there.

        That is, in a cluster of ours, the queues that are always there, and where it is only to be `used`, an adopted
        node. Raises ForeignObjectError for any other.
        """
        if ref.namespace:
            return None  # in our own namespace, whoever made it
        before = self.history.now().get(ref.kind, ref.name) or self._unseen(ref)
        if before is None or (before["metadata"].get("labels") or {}).get(SCENARIO) == self.namespace:
            return None
        built_in = ref.kind == Kind.QUEUE and ref.name in BUILT_IN_QUEUES and not self._ownership.shared
        if built_in or (used and ref.kind == Kind.NODE and ref.name in self._adopted):
            return before
        if ref.kind == Kind.NODE and self._ownership.shared:
            todo = f"call the scenario's node otherwise, or use this one as it is (--adopt-nodes {ref.name})"
        else:
            todo = f"call the scenario's {ref.kind} otherwise"
        raise ForeignObjectError(
            f"{ref} is there and not the scenario's ({SCENARIO} is not {self.namespace}): it is left as it is\n"
            f"  do next: {todo}"
        )

    def _unseen(self, ref: Ref) -> Object | None:
        """An object that the history leaves out, as it is others'."""
        if not self._ownership.shared:
            return None
        answer = self._api.raw("GET", ref.path())
        found: Object | None = answer.json() if answer.status == 200 else None
        return found

    def _require_own(self, ref: Ref) -> None:
        """Raise ForeignObjectError for what is not ours; the queues that are always there know to refuse themselves."""
        self._foreign(ref)

    def _borrow(self, ref: Ref, before: Object, change: Object, subresource: str = "") -> None:
        borrow(self._api, ref, before, change, subresource)
        self._cleanup.borrowed.add(ref)

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
