"""Check a shared cluster before a run writes to it. Read-only.

Each error is typed and names the obstacle and the remedy.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

import yaml

from ..api.client import Api, Object, pages
from ..api.errors import ForeignObjectError, HarnessError, MissingRightsError, RejectedError
from ..api.kinds import BUILT_IN_QUEUES, SERVED, Kind, Ref
from ..api.names import SAME_NAMED
from ..clusters.protocol import SCENARIO
from . import nodes
from .cleanup import labelled
from .ownership import Ownership
from .restore import is_borrowed

RIGHTS: Final = Path(__file__).with_name("rights.yaml")
"""ClusterRole that a run needs."""
_REVIEWS: Final = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_PARALLEL_REVIEWS = 8
_SHOWN = 8
"""Maximum number of names shown from a long list."""


class Right(NamedTuple):
    """A verb on a resource in all namespaces; `*` means all."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{f'.{self.group}' if self.group else ''}"


class Claim(NamedTuple):
    """A name that a scenario will use, and the `file:line` that uses it."""

    ref: Ref
    where: str


def check(api: Api, ownership: Ownership, scheduler_name: str, *, sees_all: bool) -> None:
    """Refuse a cluster on which a run must not begin.

    Args:
        api: The API server.
        ownership: Which objects are the run's.
        scheduler_name: Name of the scheduler that the run starts; empty if it starts none.
        sees_all: The scheduler cannot be restricted to the queues and jobs of the run.

    Raises:
        MissingRightsError: the user lacks rights.
        ForeignObjectError: a foreign object prevents the run.
        HarnessError: the nodes are not suitable.
    """
    require_rights(api, required())
    swept = set(labelled(api, "/api/v1/namespaces"))  # namespaces of killed runs, which the run will delete
    _require_nodes(api, ownership, swept)
    if scheduler_name:
        _require_no_pods_of(api, scheduler_name, swept)
    if scheduler_name and sees_all:
        _require_no_foreign_work(api, swept)


def required() -> Iterator[Right]:
    """Yield every right of the ClusterRole."""
    for rule in yaml.safe_load(RIGHTS.read_text("utf-8"))["rules"]:
        yield from itertools.starmap(Right, itertools.product(rule["apiGroups"], rule["resources"], rule["verbs"]))


def require_rights(api: Api, rights: Iterable[Right]) -> None:
    """Query the API server for each right.

    Raises:
        MissingRightsError: some are missing; the text names all of them.
    """
    if _is_permitted(api, Right("*", "*", "*")):
        return
    rights = list(rights)
    with ThreadPoolExecutor(_PARALLEL_REVIEWS) as pool:
        answers = list(pool.map(lambda right: _is_permitted(api, right), rights))
    missing = [str(right) for right, permitted in zip(rights, answers, strict=True) if not permitted]
    if missing:
        raise MissingRightsError(
            f"the user of the kubeconfig lacks {len(missing)} of the {len(rights)} rights of a run: {_few(missing)}\n"
            f"  where: {api.server}\n"
            f"  do next: let an administrator apply {RIGHTS} and bind the role to the user"
        )


def bound_to(api: Api, node: str, swept: Iterable[str] = ()) -> list[str]:
    """Return the pods on a node, as namespace/name, without DaemonSets, system pods and the namespaces `swept`."""
    pods = api.call("GET", "/api/v1/pods", query={"fieldSelector": f"spec.nodeName={node}"})["items"]
    bound = [pod for pod in nodes.without_housekeeping(pods) if pod["metadata"]["namespace"] not in swept]
    return [f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" for pod in bound]


def taken(api: Api, ownership: Ownership, claims: Iterable[Claim]) -> list[Ref]:
    """Return the objects that scenarios of the run will create under names that foreign objects have.

    Volcano's built-in queues are exempt: the sentences handle them, and most scenarios do not change them.

    Raises:
        ForeignObjectError: a scenario would create a node with the name of a node that it may adopt.
    """
    places: dict[Ref, list[str]] = {}
    for ref, where in claims:
        if ref.kind != Kind.QUEUE or ref.name not in BUILT_IN_QUEUES:
            places.setdefault(ref, []).append(where)
    kinds = {ref.kind for ref in places}
    foreign = {Ref(kind, name) for kind in kinds for name in _foreign_names(api, kind)}
    foreign |= {Ref(kind, name) for of, kind in SAME_NAMED.items() if kind in kinds for name in _foreign_names(api, of)}
    for ref, lines in places.items():
        if ref.kind == Kind.NODE and ref.name in ownership.adoptable:
            raise ForeignObjectError(
                f"a scenario of this run would create {ref}, which it may adopt; used at "
                f"{_few(list(dict.fromkeys(lines)))}\n"
                "  do next: rename the node in the scenario, or leave it out of --adopt-nodes"
            )
    return [ref for ref in places if ref in foreign]


def _foreign_names(api: Api, kind: Kind) -> list[str]:
    """Return the names of all objects of a kind without a scenario's label."""
    answer = api.raw("GET", SERVED[kind].path())
    metas = [item["metadata"] for item in answer.json()["items"]] if answer.status == 200 else []
    return [str(meta["name"]) for meta in metas if SCENARIO not in (meta.get("labels") or {})]


def _require_nodes(api: Api, ownership: Ownership, swept: set[str]) -> None:
    """Check that the nodes of the scheduler under test are ours or named by the user, and free of foreign pods."""
    existing: dict[str, Object] = {node["metadata"]["name"]: node for node in api.call("GET", "/api/v1/nodes")["items"]}
    for name, node in existing.items():
        labels = node["metadata"].get("labels") or {}
        if nodes.WORLD in labels and SCENARIO not in labels and not is_borrowed(node):
            raise ForeignObjectError(
                f"node {name} has the label {nodes.WORLD} and does not belong to a scenario: the scheduler under test "
                f"would use it\n  do next: kubectl label node {name} {nodes.WORLD}-"
            )
    for name in ownership.adoptable:
        if name not in existing:
            raise HarnessError(
                f"there is no node {name}\n  where: --adopt-nodes\n  do next: name some of: {_few(sorted(existing))}"
            )
        if not nodes.is_real(existing[name]) and not is_borrowed(existing[name]):
            raise HarnessError(
                f"node {name} accepts no ordinary pods: it is tainted or a KWOK node\n"
                f"  where: --adopt-nodes\n  do next: name another, or see: kubectl describe node {name}"
            )
        if bound := bound_to(api, name, swept):
            raise ForeignObjectError(
                f"foreign pods are bound to node {name} ({len(bound)}): {_few(bound)}\n"
                f"  where: --adopt-nodes\n  do next: kubectl drain {name} --ignore-daemonsets, or name another node"
            )


def _require_no_pods_of(api: Api, scheduler_name: str, swept: set[str]) -> None:
    found = pages(api, "/api/v1/pods", fieldSelector=f"spec.schedulerName={scheduler_name}")
    pods = (item["metadata"] for page in found for item in page["items"])
    foreign = [f"{meta['namespace']}/{meta['name']}" for meta in pods if meta["namespace"] not in swept]
    if foreign:
        raise ForeignObjectError(
            f"foreign pods ({len(foreign)}) name the scheduler that this run would start, {scheduler_name}: "
            f"{_few(foreign)}\n"
            "  do next: test the installed scheduler (--scheduler none), or run on a cluster of your own "
            "(--cluster embedded)"
        )


def _require_no_foreign_work(api: Api, swept: set[str]) -> None:
    for kind in (Kind.QUEUE, Kind.PODGROUP, Kind.VCJOB):
        try:
            items = [item for page in pages(api, SERVED[kind].path()) for item in page["items"]]
        except RejectedError as problem:
            if problem.status not in (403, 404):  # 403 hides whether the server serves the kind
                raise
            items = []
        refs = [(Ref(kind, item["metadata"]["name"], item["metadata"].get("namespace", "")), item) for item in items]
        foreign = [
            str(ref)
            for ref, item in refs
            if ref.namespace not in swept
            and SCENARIO not in (item["metadata"].get("labels") or {})
            and not (kind == Kind.QUEUE and ref.name in BUILT_IN_QUEUES)
        ]
        if foreign:
            raise ForeignObjectError(
                f"the scheduler under test would write to foreign objects: {_few(foreign)}; it cannot be restricted\n"
                "  do next: run on a cluster of your own (--cluster embedded), or with --scheduler schedspec"
            )


def _is_permitted(api: Api, right: Right) -> bool:
    resource, _, subresource = right.resource.partition("/")
    attributes = {"group": right.group, "resource": resource, "subresource": subresource, "verb": right.verb}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    return bool(api.call("POST", _REVIEWS, body=body)["status"]["allowed"])


def _few(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"
