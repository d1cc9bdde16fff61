"""The API server of a virtual cluster: answers requests of Kubernetes' HTTP API at once.

It sets the defaults on which schedulers and controllers rely: phases, grace periods, priorities. It refuses what the
schemas and admission policies of a real API server refuse.
"""

from __future__ import annotations

import base64
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from ...scheduler.lint.schemas import definitions
from ...scheduler.model import resources
from ...scheduler.model.resources import Resource
from . import merge, pod_level, store
from .store import DEFAULT_GRACE, Key, Kind, Object, RefusedError, Store

_ENDED = ("Succeeded", "Failed")


def with_defaults(container: Object, ranges: Iterable[Object]) -> Object:
    """Return the container with the default requests and limits of its namespace's LimitRanges.

    Raises RefusedError for an amount that a LimitRange forbids.
    """
    given = container.get("resources") or {}
    for limit in (it for item in ranges for it in item["spec"].get("limits") or () if it.get("type") == "Container"):
        own = given.get("limits") or {}
        defaults = {**(limit.get("default") or {}), **(limit.get("defaultRequest") or {})}
        limits = {**(limit.get("default") or {}), **own}
        given = {**given, "limits": limits, "requests": {**defaults, **own, **(given.get("requests") or {})}}
        for bound, sign, name in (("min", -1, "minimum"), ("max", 1, "maximum")):
            for resource, amount in (limit.get(bound) or {}).items():
                has = resources.parse({resource: given["requests"].get(resource, "0")})[resource]
                if sign * (has - resources.parse({resource: amount})[resource]) > 0:
                    raise RefusedError(403, "Forbidden", f"{name} {resource} usage per Container is {amount}")
    return {**container, "resources": given} if given else container


def require_room(pod: Object, quotas: Sequence[Object], others: Iterable[Object]) -> None:
    """Check that the pods of a namespace stay within its quotas with one more. Raises RefusedError."""
    if not quotas:
        return
    used = [_usage(other) for other in others if other["status"].get("phase") not in _ENDED]
    wanted = _usage(pod)
    for quota in quotas:
        name = quota["metadata"]["name"]
        for key, amount in (quota["spec"].get("hard") or {}).items():
            group, _, resource = key.partition(".") if key.startswith(("requests.", "limits.")) else ("", "", key)
            group, resource = group or "requests", resource.removeprefix("count/")
            if resource in ("cpu", "memory") and resource not in wanted[group]:
                raise RefusedError(403, "Forbidden", f"failed quota: {name}: must specify {key}")
            most = resources.parse({resource: amount})[resource]
            needed = wanted[group].get(resource, 0)
            if needed and sum(one[group].get(resource, 0) for one in used) + needed > most:
                raise RefusedError(403, "Forbidden", f"exceeded quota: {name}, limited: {key}={amount}")


def _usage(pod: Object) -> dict[str, Resource]:
    """Return the requests, with one pod, and the limits of a pod."""
    spec, found = pod["spec"], {"requests": resources.parse({"pods": "1"}), "limits": Resource()}
    for group, before in found.items():
        whole = resources.parse((spec.get("resources") or {}).get(group) or {})
        found[group] = {**before, **pod_level.of_containers(spec, group), **whole}
    return found


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_REFUSES = "schedspec.dev/refuses-bindings-of"
_APPLY = "application/apply-patch+yaml"
_JSON_PATCH = "application/json-patch+json"
_STRATEGIC = "application/strategic-merge-patch+json"


class ResourcePath:
    """The parts of a path: a kind, and possibly a namespace, an object and its subresource."""

    def __init__(self, path: str) -> None:
        parts = [unquote(part) for part in path.strip("/").split("/")]
        head = 2 if parts[0] == "api" else 3
        self.api_version = "/".join(parts[1:head])
        rest = parts[head:]
        self.namespace = ""
        if len(rest) > 2 and rest[0] == "namespaces" and (self.api_version, rest[2]) in store.BY_PATH:
            self.namespace, rest = rest[1], rest[2:]
        plural, self.name, self.sub = (*rest, "", "", "")[:3]
        self.is_group = not rest
        self.kind = store.BY_PATH.get((self.api_version, plural))
        self.path = path

    @property
    def key(self) -> Key:
        return Key(self.namespace if self.kind and self.kind.namespaced else "", self.name)


class ApiServer:
    """Answers requests on a store. `later` runs a function after some virtual seconds."""

    version = "v1.36.3"
    """The Kubernetes version that this server imitates."""

    def __init__(self, store: Store, later: Callable[[float, Callable[[], None]], object]) -> None:
        self.store, self._later = store, later
        self._applied: defaultdict[str, dict[tuple[str, str], Object]] = defaultdict(dict)
        """Uid → field manager and subresource → the fields that were applied last."""
        self._names = itertools.count(1)
        store.add_listener(self._forget)

    def _forget(self, kind: Kind, change: str, item: Object) -> None:
        del kind
        if change == "DELETED":
            self._applied.pop(item["metadata"]["uid"], None)

    def request(self, method: str, target: str, body: bytes = b"", content_type: str = "") -> tuple[int, bytes]:
        """Return status and body of the answer."""
        split = urlsplit(target)
        query = dict(parse_qsl(split.query))
        try:
            answer = self._route(method, split.path, query, _decode(body) if body else None, content_type)
            return 201 if method == "POST" else 200, _encode(answer)
        except RefusedError as refused:
            status = {"kind": "Status", "status": "Failure", "code": refused.status, "reason": refused.reason}
            causes = [{"field": field} for field in refused.fields]
            details = {"details": {"causes": causes}} if causes else {}
            return refused.status, _encode({**status, **details, "message": refused.message})

    def _route(self, method: str, path: str, query: Mapping[str, str], body: Any, content_type: str) -> Object:
        if path == "/version":
            return {"gitVersion": self.version}
        place = ResourcePath(path)
        if place.is_group:
            return {"resources": [_described(kind) for kind in store.SERVED if kind.api_version == place.api_version]}
        if place.kind is None:
            raise RefusedError(404, "NotFound", f"{path}: the server could not find the requested resource")
        if method == "GET":
            return self._found(place) if place.name else self._list(place, query)
        if method == "POST":
            return self._bind(place, body) if place.sub == "binding" else self._posted(place, body)
        if method == "DELETE":
            return self._delete(place, query, body or {})
        return self._patch(place, query, body, content_type if method == "PATCH" else "")

    # ------------------------------------------------------------------------------------------------------ reading

    def _found(self, place: ResourcePath) -> Object:
        assert place.kind is not None
        found = self.store.get(place.kind, place.key)
        if found is None:
            raise RefusedError(404, "NotFound", f'{place.kind.plural} "{place.name}" not found')
        return found

    def _list(self, place: ResourcePath, query: Mapping[str, str]) -> Object:
        assert place.kind is not None
        wanted = selector(query)
        items = [item for item in self.store.all(place.kind, place.namespace) if wanted(item)]
        return {"kind": f"{place.kind.kind}List", "metadata": {"resourceVersion": self.store.version}, "items": items}

    # ------------------------------------------------------------------------------------------------------ writing

    def _posted(self, place: ResourcePath, body: Object) -> Object:
        assert place.kind is not None
        _require_valid(place.kind, body)
        return self.create(place.kind, place.namespace, body)

    def create(self, kind: Kind, namespace: str, body: Object) -> Object:
        """Create an object, with its defaults. Raises RefusedError."""
        meta = dict(body.get("metadata") or {})
        if kind.namespaced:
            meta["namespace"] = namespace or meta.get("namespace", "default")
            home = self.store.get(store.NAMESPACES, Key("", meta["namespace"]))
            if home is not None and home["metadata"].get("deletionTimestamp"):
                raise RefusedError(403, "Forbidden", f"namespace {meta['namespace']} is being terminated")
        if not meta.get("name"):
            meta["name"] = f"{meta.get('generateName', 'object-')}{suffix(next(self._names))}"
        new = {**body, "metadata": meta}
        if kind.has_status and kind is not store.NODES:
            new.pop("status", None)
        if kind is store.PODS:
            new = self._admitted(new)
        elif kind is store.NAMESPACES:
            new["status"] = {"phase": "Active"}
        return self.store.create(kind, new)

    def _admitted(self, pod: Object) -> Object:
        """Return the pod with its priority, grace period and phase, as admission sets them."""
        spec = dict(pod.get("spec") or {})
        classes = self.store.all(store.PRIORITY_CLASSES)
        class_name = spec.get("priorityClassName")
        default = next((item for item in classes if item.get("globalDefault")), None)
        named = next((item for item in classes if item["metadata"]["name"] == class_name), None)
        if class_name and named is None and not class_name.startswith("system-"):
            raise RefusedError(403, "Forbidden", f"no PriorityClass with name {class_name} was found")
        given = named if class_name else default
        spec.setdefault("priority", given["value"] if given else 0)
        spec.setdefault("preemptionPolicy", (given or {}).get("preemptionPolicy", "PreemptLowerPriority"))
        spec.setdefault("terminationGracePeriodSeconds", DEFAULT_GRACE)
        spec.setdefault("restartPolicy", "Always")
        space = pod["metadata"]["namespace"]
        ranges, quotas = (self.store.all(kind, space) for kind in (store.LIMIT_RANGES, store.RESOURCE_QUOTAS))
        containers = [with_defaults(container, ranges) for container in spec.get("containers") or ()]
        spec["containers"] = [_with_requests(container) for container in containers]
        spec = pod_level.admitted(spec)
        require_room({**pod, "spec": spec}, quotas, self.store.all(store.PODS, space) if quotas else ())
        status: Object = {"phase": "Pending"}
        if spec.get("schedulingGates"):
            gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
            status["conditions"] = [{**gated, "message": "Scheduling is blocked due to non-empty scheduling gates"}]
        return {**pod, "spec": spec, "status": status}

    def _patch(self, place: ResourcePath, query: Mapping[str, str], body: Any, content_type: str) -> Object:
        assert place.kind is not None
        kind, key = place.kind, place.key
        old = self.store.get(kind, key)
        manager = query.get("fieldManager", "") if content_type == _APPLY else ""
        if old is None and manager and not place.sub:
            _require_valid(kind, body)
            made = self.create(kind, place.namespace, {**body, "metadata": {**body["metadata"], "name": place.name}})
            self._applied[made["metadata"]["uid"]][manager, ""] = body
            return made
        old = self._found(place)
        meta = body.get("metadata") or {} if isinstance(body, Mapping) else {}
        for name in ("uid", "resourceVersion"):
            if meta.get(name) and meta[name] != old["metadata"][name]:
                raise RefusedError(409, "Conflict", f"{kind.plural} {place.name}: {name} is {old['metadata'][name]}")
        if content_type == _JSON_PATCH:
            new = merge.json_patch(old, body)
        elif not content_type:
            new = body
        elif manager:
            applied = self._applied[old["metadata"]["uid"]]
            new = merge.apply(old, applied.get((manager, place.sub), {}), body)
            applied[manager, place.sub] = body
        else:
            new = merge.merge(old, body, keyed=content_type == _STRATEGIC)
        if place.sub == "status":
            new = {**old, "status": new.get("status") or {}}
        else:
            _require_valid(kind, {name: new[name] for name in new if name != "status"}, old, "UPDATE")
            if kind is store.BATCH_JOBS:
                _require_same_template(new, old)
            if kind.has_status:
                new = {**new, "status": old["status"]} if "status" in old else {k: new[k] for k in new if k != "status"}
        return self.store.change(kind, key, {**new, "apiVersion": kind.api_version, "kind": kind.kind})

    def _bind(self, place: ResourcePath, body: Object) -> Object:
        self._require_accepted(place)
        pod = self._found(place)
        if body["metadata"].get("uid") not in (None, pod["metadata"]["uid"]):
            raise RefusedError(409, "Conflict", f"pod {place.name} was replaced: its uid differs")
        if pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp"):
            raise RefusedError(409, "Conflict", f"pod {place.name} is already assigned to a node, or being deleted")
        bound = {"type": "PodScheduled", "status": "True"}
        new = {**pod, "spec": {**pod["spec"], "nodeName": body["target"]["name"]}}
        if more := body["metadata"].get("annotations"):
            new["metadata"] = {**pod["metadata"], "annotations": {**(pod["metadata"].get("annotations") or {}), **more}}
        new["status"] = merge.merge(pod["status"], {"conditions": [bound]}, keyed=True)
        new["status"]["conditions"] = [
            condition if condition["type"] != "PodScheduled" else bound for condition in new["status"]["conditions"]
        ]
        self.store.change(store.PODS, place.key, new)
        return {"kind": "Status", "status": "Success"}

    def _require_accepted(self, place: ResourcePath) -> None:
        """Refuse a binding that an admission policy of a scenario refuses. Raises RefusedError."""
        for policy in self.store.all(store.ADMISSION_POLICIES):
            namespace, _, name = (policy["metadata"].get("annotations") or {}).get(_REFUSES, "").partition("/")
            if namespace == place.namespace and f"{place.name}-".startswith(f"{name}-"):
                text = policy["spec"]["validations"][0]["message"]
                title = f"ValidatingAdmissionPolicy '{policy['metadata']['name']}'"
                raise RefusedError(422, "Invalid", f'pods "{place.name}" is forbidden: {title} denied request: {text}')

    # ----------------------------------------------------------------------------------------------------- deleting

    def _delete(self, place: ResourcePath, query: Mapping[str, str], options: Mapping[str, Any]) -> Object:
        assert place.kind is not None
        grace, orphan = options.get("gracePeriodSeconds"), options.get("propagationPolicy") == "Orphan"
        if not place.name:
            wanted = selector(query)
            for item in self.store.all(place.kind, place.namespace):
                if wanted(item):
                    self.delete(place.kind, _key(item), grace, orphan=orphan)
            return {"kind": "Status", "status": "Success"}
        found = self._found(place)
        uid = (options.get("preconditions") or {}).get("uid")
        if uid and uid != found["metadata"]["uid"]:
            raise RefusedError(409, "Conflict", f"{place.kind.plural} {place.name} was replaced: its uid differs")
        _require_valid(place.kind, found, found, "DELETE")
        self.delete(place.kind, place.key, grace, orphan=orphan)
        return {"kind": "Status", "status": "Success"}

    def delete(self, kind: Kind, key: Key, grace: int | None = None, *, orphan: bool = False) -> None:
        """Delete an object: a pod on a node after its grace period, an object with finalizers once it has none."""
        item = self.store.get(kind, key)
        if item is None:
            return
        if kind is store.NAMESPACES:
            self.store.mark_deleted(kind, key, 0)
            self._later(0.0, lambda: self._empty_namespace(key.name))
            return
        if kind is store.PODS:
            default = item["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE)
            grace = default if grace is None else grace
            is_over = item["status"].get("phase") in ("Succeeded", "Failed")
            if grace and item["spec"].get("nodeName") and not is_over:
                self.store.mark_deleted(kind, key, grace)
                return
        if item["metadata"].get("finalizers"):
            self.store.mark_deleted(kind, key, 0)
            return
        self.store.remove(kind, key)
        if not orphan:
            self._later(_GC_DELAY, lambda: self._collect(item["metadata"]["uid"]))

    def _collect(self, uid: str) -> None:
        """Delete the dependents of a deleted owner."""
        for kind, key in self.store.owned_by(uid):
            self.delete(kind, key)

    def _empty_namespace(self, namespace: str) -> None:
        left = list(self.store.in_namespace(namespace))
        for kind, item in left:
            self.delete(kind, _key(item))
        if any(True for _ in self.store.in_namespace(namespace)):
            self._later(_GC_DELAY, lambda: self._empty_namespace(namespace))
        else:
            self.store.remove(store.NAMESPACES, Key("", namespace))


_GC_DELAY = 0.05
"""Seconds until the garbage collector notices that an owner was deleted."""


def _require_valid(kind: Kind, item: Object, old: Object | None = None, operation: str = "CREATE") -> None:
    """Refuse an object as the API server's schemas and admission policies do. Raises RefusedError."""
    typed = {**item, "apiVersion": kind.api_version, "kind": kind.kind}
    if flaws := definitions().flaws(typed, old, operation):
        name = (item.get("metadata") or {}).get("name", "")
        text = "; ".join(f"{flaw.field}: {flaw.text}; {flaw.remedy}" for flaw in flaws)
        forbidden = operation == "DELETE"
        status, reason = (403, "Forbidden") if forbidden else (422, "Invalid")
        message = f'{kind.kind} "{name}" is {"protected" if forbidden else "invalid"}: {text}'
        raise RefusedError(status, reason, message, [flaw.field for flaw in flaws])


def _require_same_template(job: Object, old: Object) -> None:
    """Refuse another template for a Job that is not suspended. Raises RefusedError."""
    if not old["spec"].get("suspend") and job["spec"].get("template") != old["spec"].get("template"):
        text = f'Job.batch "{old["metadata"]["name"]}" is invalid: spec.template: field is immutable'
        raise RefusedError(422, "Invalid", text, ["spec.template"])


def suffix(number: int) -> str:
    """Return five letters or digits, different for each number."""
    return base64.b32encode((number * 0x9E3779B1 & 0xFFFFFFFF).to_bytes(4, "big")).decode().lower()[:5]


def selector(query: Mapping[str, str]) -> Callable[[Object], bool]:
    """Return a predicate: whether an object has the labels and the name that a query selects."""
    labels = dict(part.split("=", 1) for part in query.get("labelSelector", "").split(",") if "=" in part)
    exists = [part for part in query.get("labelSelector", "").split(",") if part and "=" not in part]
    name = dict(part.split("=", 1) for part in query.get("fieldSelector", "").split(",") if part).get("metadata.name")

    def wanted(item: Object) -> bool:
        own = item["metadata"].get("labels") or {}
        return (
            all(own.get(key) == value for key, value in labels.items())
            and all(key in own for key in exists)
            and name in (None, item["metadata"]["name"])
        )

    return wanted


def _described(kind: Kind) -> Object:
    return {"name": kind.plural, "kind": kind.kind, "namespaced": kind.namespaced}


def _with_requests(container: Object) -> Object:
    """Set the request of a container to its limit where it has a limit and no request."""
    given = container.get("resources") or {}
    requests = {**(given.get("limits") or {}), **(given.get("requests") or {})}
    return {**container, "resources": {**given, "requests": requests}} if requests else container


def _key(item: Object) -> Key:
    return Key(item["metadata"].get("namespace", ""), item["metadata"]["name"])
