"""A scenario's objects: created from templates, changed, finished and deleted. The world owns them.

Namespaced objects are in a namespace of the scenario's own, or in further ones (`api.spaces`). Queues, priority classes
and nodes are cluster-wide: on a shared cluster they get a real name of their own if a foreign object has their name
(`api.names`). Each call returns when the history shows its effect.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from ..api import clock, spaces, timeouts
from ..api.client import JSON_PATCH, MERGE, Api, Object, run_in_pod
from ..api.errors import ForeignObjectError, HarnessError, RejectedError, Unmet
from ..api.kinds import SERVED, Kind, Ref, kind_of
from ..clusters.protocol import SCENARIO
from ..observe.expect import Expect, Outcome
from ..observe.history import History, View
from . import nodes, own_work
from .cleanup import Cleanup
from .companions import Companions, MakesCompanions
from .namespaces import Namespaces
from .ownership import TAINT, Foreign, Ownership
from .refused_bindings import RefusedBindings
from .restore import at, borrow
from .templates import Rendered, Templates


class PolicyUser(Protocol):
    """The part of a scheduler that the world needs."""

    def use_policy(self, text: str) -> str:
        """Put a policy into force. Return its sha256."""


class PolicySpan(NamedTuple):
    """A policy, and the time (monotonic seconds) in which it alone was in force."""

    text: str
    """Its text; empty for the run's own policy."""
    since: float = -math.inf
    until: float = math.inf


class World:
    """A scenario's objects. Not thread-safe: a scenario has one thread."""

    def __init__(
        self,
        api: Api,
        history: History,
        expect: Expect,
        templates: Templates,
        scheduler: PolicyUser | None,
        *,
        ownership: Ownership,
        companions: MakesCompanions = lambda _queues, _nodes, _policy: (),
    ) -> None:
        self.namespace = history.namespace
        self.policy = ""
        """Text of the policy that this scenario put into force; empty for the run's own."""
        self.policy_name = ""
        """Name of that policy."""
        self.policies = [PolicySpan("")]
        """The policies in the order in which they came into force."""
        self.history, self.expect = history, expect
        self._api, self._templates, self._scheduler = api, templates, scheduler
        self._manager = f"schedspec-{self.namespace}"
        self._ownership = ownership
        self._foreign = Foreign(api, history, ownership, self._rename)
        made = Companions(companions, history, {SCENARIO: self.namespace})
        self._namespaces = Namespaces(api, history, self._manager, made, self._wait_for)
        self.bindings = RefusedBindings(api, self.namespace)
        self._cleanup = Cleanup(api, history, self._namespaces.names)

    def open(self) -> None:
        """Create the namespace after a check for foreign objects.

        Raises:
            DirtyClusterError: objects of an earlier scenario remain.
            ForeignObjectError: the namespace exists already.
        """
        self._cleanup.require_empty(self.expect)
        self._namespaces.open()
        self._namespaces.apply_companions(self.policy)

    def close(self, expect: Expect) -> None:
        """Delete all objects by force.

        Raises:
            DirtyClusterError: objects remain; the text names them.
        """
        self.bindings.close()
        self._cleanup.empty(expect)

    def use_policy(self, name: str) -> None:
        """Put templates/policies/`name`.yaml into force.

        Raises:
            PolicyRefusedError: the scheduler rejected the policy.
            TemplateError: the policy does not exist.
        """
        self.use_policy_text(self._templates.policy(name), name)

    def use_policy_text(self, text: str, name: str) -> None:
        """Put the text of a policy into force; `name` is its name in reports.

        Raises:
            PolicyRefusedError: the scheduler rejected the policy.
        """
        self.policy, self.policy_name = text, name
        asked = clock.monotonic()
        if self._scheduler is not None:
            self._scheduler.use_policy(self.policy)
        self.policies[-1:] = [self.policies[-1]._replace(until=asked), PolicySpan(text, clock.monotonic())]
        self._namespaces.apply_companions(self.policy)

    def render(self, template: str, **parameters: object) -> list[Rendered]:
        """Return the objects of templates/`template`.yaml.j2 without applying them.

        A `name` such as `team-b/train` stands for the object train in the namespace team-b of the scenario.

        Raises:
            TemplateError: the template is missing or invalid.
        """
        own = {"namespace": self.namespace, **parameters}
        for field in ("name", "gang"):
            if isinstance(name := parameters.get(field), str):
                own["namespace"], own[field] = spaces.real(self.namespace, name)
        return self._templates.render(template, own)

    def apply(self, template: str, **parameters: object) -> list[Ref]:
        """Render a template and apply its objects.

        Raises:
            TemplateError: the template is missing or invalid.
            RejectedError: the API server refused an object.
        """
        return self.apply_all([(template, parameters)])

    def apply_all(self, wanted: Iterable[tuple[str, Mapping[str, object]]]) -> list[Ref]:
        """Render several templates and apply them; if one is forbidden, apply none.

        Raises:
            TemplateError: a template is missing or invalid.
            RejectedError: the API server refused an object.
            ForeignObjectError: an object exists and is not the scenario's.
        """
        return self.apply_rendered(
            [rendered for template, parameters in wanted for rendered in self.render(template, **parameters)]
        )

    def apply_rendered(self, all_rendered: Sequence[Rendered]) -> list[Ref]:
        """Apply objects of a template or a manifest; return when the history shows all of them.

        Raises RejectedError, ForeignObjectError.
        """
        for rendered in all_rendered:
            if space := spaces.space_of(self.namespace, rendered.object["metadata"].get("namespace", "")):
                self._namespaces.use(space)
        foreign = [self._foreign.changeable(self._ref_of(rendered), made=True) for rendered in all_rendered]
        done = [self._apply(rendered, before) for rendered, before in zip(all_rendered, foreign, strict=True)]
        self._wait_for(done)
        if any(ref.kind in (Kind.QUEUE, Kind.NODE) for ref, _ in done):
            self._namespaces.apply_companions(self.policy)
        return [ref for ref, _ in done]

    def apply_work(self, path: Path, rows: Sequence[Mapping[str, object]] = ()) -> list[Ref]:
        """Apply the work of a manifest, with the values of these rows in place of those of the file.

        Raises WorkError, RejectedError, ForeignObjectError.
        """
        return self.apply_rendered(own_work.rendered(path, self.namespace, self._templates.common, rows))

    def add_nodes(self, rows: Sequence[Mapping[str, object]]) -> list[str]:
        """Create KWOK nodes; return when all are Ready.

        Args:
            rows: Parameters of templates/node.yaml.j2, one row for each node.

        Raises:
            DirtyClusterError: a pod is already bound to one of them.
        """
        return self.add_rendered_nodes([rendered for row in rows for rendered in self.render("node", **row)])

    def add_rendered_nodes(self, rendered: Sequence[Rendered]) -> list[str]:
        """Create these nodes; return when all are Ready. Raises DirtyClusterError as `add_nodes` does."""
        names = [ref.name for ref in map(self._ref_of, rendered) if ref.kind == Kind.NODE]
        nodes.require_empty(self.history.now(), names)  # checked first: waiting pods are bound as soon as nodes exist
        self.apply_rendered(rendered)
        self.expect.eventually(nodes.ready(names), within=timeouts.PHASE)
        return names

    def adopt_real_nodes(self) -> list[str]:
        """Use the cluster's own nodes in this scenario.

        Raises:
            HarnessError: there are none.
            DirtyClusterError: a pod is bound to one of them.
        """
        names = self._real_nodes()
        if not names:
            raise HarnessError(
                "the cluster has no real nodes that scenarios may use\n"
                "  do next: name some (--adopt-nodes NAME,...), or run this on kind"
                if self._ownership.shared
                else "the cluster has no real nodes: name KWOK nodes, or run this on kind"
            )
        return self._adopt(names)

    def _real_nodes(self) -> list[str]:
        return [name for name in nodes.real(self.history.now()) if self._ownership.may_adopt(name)]

    def _adopt(self, names: list[str]) -> list[str]:
        view = self.history.now()
        nodes.require_empty(view, names)
        self._foreign.adopted.update(names)
        for name in names:
            change: Object = {"metadata": {"labels": {nodes.WORLD: "true"}}}
            node = view.get(Kind.NODE, name)
            if self._ownership.shared and node is not None:
                change["spec"] = {"taints": [*(node["spec"].get("taints") or ()), TAINT]}
            self.patch(Kind.NODE, name, change)
        return names

    def adopt_nodes_with_cards(self, model: str, number: int) -> list[str]:
        """Use one of the cluster's own nodes, with this model and number of cards; return no name if there is none."""
        view = self.history.now()
        names = [name for name in self._real_nodes() if nodes.cards(view.get(Kind.NODE, name)) == (model, number)]
        return self._adopt(names[:1])

    def remove_node(self, name: str) -> None:
        """Delete a node, and by force every pod on it.

        Raises:
            ForeignObjectError: the node is not the scenario's.
        """
        self.require_own(self.history.ref(Kind.NODE, name))
        on_it = [pod for pod in self.history.now().mine(Kind.POD) if pod["spec"].get("nodeName") == name]
        self._api.delete(self.history.ref(Kind.NODE, name).path())
        for pod in on_it:
            self._api.delete(self.history.ref(Kind.POD, str(pod["metadata"]["name"])).path(), grace=0)
        self._namespaces.apply_companions(self.policy, without_node=name)

    def delete(self, kind: Kind, name: str) -> None:
        """Delete an object gracefully, as a user does. Return when the deletion is observed.

        Raises:
            RejectedError: the API server refused the deletion.
            ForeignObjectError: the object is not the scenario's.
        """
        ref = self.history.ref(kind, name)
        self.require_own(ref)
        before = len(self.history)
        if not self._api.delete(ref.path()):
            raise RejectedError(f"there is no {ref} to delete", 404, "NotFound")

        def begun(_: View) -> Outcome:
            versions = [version for version in self.history.story(ref) if version.seq > before]
            ok = any(
                version.change == "gone" or version.object["metadata"].get("deletionTimestamp") for version in versions
            )
            return Outcome(ok, f"{ref} is being deleted", "its watch has not shown it", (ref,))

        self.expect.eventually(begun, within=timeouts.SHOWN)

    def patch(self, kind: Kind, name: str, change: Object, *, subresource: str = "") -> None:
        """Merge `change` into an object.

        Raises:
            RejectedError: the API server refused the change.
            ForeignObjectError: the object is not the scenario's.
        """
        ref = self.history.ref(kind, name)
        if before := self._foreign.changeable(ref, used=True):
            self._borrow(ref, before, change, subresource)
        answer = self._api.call("PATCH", ref.path(subresource), body=change, content_type=MERGE)
        self._wait_for([(ref, answer)])

    def replace(self, kind: Kind, name: str, pointer: str, value: object) -> None:
        """Set one field to exactly `value`. `pointer` is a JSON pointer, for instance `/spec/deserved`.

        Raises:
            RejectedError: the API server refused the change.
            ForeignObjectError: the object is not the scenario's.
        """
        ref = self.history.ref(kind, name)
        if before := self._foreign.changeable(ref, used=True):
            self._borrow(ref, before, at(pointer, value, before))
        body = [{"op": "add", "path": pointer, "value": value}]
        answer = self._api.call("PATCH", ref.path(), body=body, content_type=JSON_PATCH)
        self._wait_for([(ref, answer)])

    def scale(self, kind: Kind, name: str, replicas: int) -> None:
        """Set the number of replicas of a workload.

        Raises:
            RejectedError: the API server refused the change.
        """
        self.patch(kind, name, {"spec": {"replicas": replicas}})

    def finish(self, pod: str, *, exit_code: int | None = None) -> None:
        """Make a running pod finish. Only a pod on a KWOK node exits with `exit_code`.

        Raises:
            RejectedError: the API server refused the change.
        """
        found = self.history.now().get(Kind.POD, pod)
        node = found and self.history.now().get(Kind.NODE, found["spec"].get("nodeName", ""))
        if node and nodes.SIMULATED not in (node["metadata"].get("annotations") or {}):
            run_in_pod(self._api, *spaces.real(self.namespace, pod), ["/worker", "finish"])
            return
        annotations = {"schedspec.dev/run-for": "0s"}
        annotations |= {"schedspec.dev/exit-code": str(exit_code)} if exit_code is not None else {}
        self.patch(Kind.POD, pod, {"metadata": {"annotations": annotations}})

    def create(self, obj: Object) -> Object:
        """Create an object without a template (a Command), by default in the scenario's namespace.

        Raises:
            RejectedError: the API server refused the object.
            ForeignObjectError: the Command is for a foreign queue.
        """
        kind = kind_of(obj)
        target = obj.get("target") or {}
        if self._ownership.shared and target.get("kind") == "Queue":
            self.require_own(Ref(Kind.QUEUE, target["name"]))
        meta = {"namespace": self.namespace, **obj["metadata"], "labels": {SCENARIO: self.namespace}}
        resource = self._api.resource(obj["apiVersion"], obj["kind"])
        answer = self._api.call("POST", resource.path(namespace=meta["namespace"]), body={**obj, "metadata": meta})
        if kind is not None:
            self._wait_for([(self._ref(kind, answer["metadata"]), answer)])
        return answer

    def _ref_of(self, rendered: Rendered) -> Ref:
        kind, meta = kind_of(rendered.object), rendered.object["metadata"]
        if kind is None:
            raise HarnessError(f"{rendered.excerpt('kind')}: {rendered.object['kind']} is not a watched kind")
        ref = self._ref(kind, {"namespace": self.namespace, **meta} if SERVED[kind].namespaced else meta)
        if ref.namespace not in ("", self.namespace):
            raise ForeignObjectError(
                f"{rendered.excerpt('metadata.namespace')}: {ref} would be created in a foreign namespace\n"
                "  do next: write `namespace: {{ namespace }}`"
            )
        return ref

    def _ref(self, kind: Kind, meta: Object) -> Ref:
        """Return the reference of an object by its metadata."""
        space = spaces.space_of(self.namespace, real := meta.get("namespace", ""))
        return Ref(kind, f"{space}/{meta['name']}", self.namespace) if space else Ref(kind, meta["name"], real)

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

    def _rename(self, ref: Ref) -> bool:
        """Assign an object a real name of its own if a foreign object has its name, also in the policy in force."""
        before = self._api.names.policy(self.policy)
        if not self._api.names.rename(ref):
            return False
        if self._scheduler is not None and self._api.names.policy(self.policy) != before:
            self._scheduler.use_policy(self.policy)
        return True

    def require_own(self, ref: Ref) -> None:
        """Check that an object is ours. Queues that always exist are protected by the API server.

        Raises:
            ForeignObjectError: the object is not ours.
        """
        self._foreign.changeable(ref)

    def _borrow(self, ref: Ref, before: Object, change: Object, subresource: str = "") -> None:
        borrow(self._api, ref, before, change, subresource)
        self._cleanup.borrowed.add(ref)

    def _wait_for(self, done: Sequence[tuple[Ref, Object]]) -> None:
        """Return when the history has each object in this state or a later one."""

        def all_of_them(_: View) -> Outcome:
            missing = [ref for ref, obj in done if not self._has(ref, int(obj["metadata"]["resourceVersion"]))]
            text = ", ".join(map(str, missing))
            return Outcome(not missing, "the watch shows the applied objects", f"not yet: {text}", tuple(missing))

        try:
            self.expect.eventually(all_of_them, within=timeouts.SHOWN)
        except Unmet as problem:
            raise HarnessError(
                f"the API server accepted the objects, but the watch does not show them: {problem.seen}"
            ) from None

    def _has(self, ref: Ref, version: int) -> bool:
        return any(
            int(shown.object["metadata"]["resourceVersion"]) >= version for shown in self.history.story(ref)[::-1]
        )
