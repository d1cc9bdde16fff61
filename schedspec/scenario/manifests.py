"""Read a team's real manifests: the queues, nodes and policy that `kubectl get -o yaml` prints or a repository keeps.

1. `find` returns the first file of a name in the given folders.
2. `queues` and `nodes` keep the fields that a user writes and drop those that a cluster adds (status, uid, versions),
   so that the same file can be applied to an empty cluster. Documents of other kinds are left out.
3. `policy` reads the text of a scheduler's configuration, from a plain file or from an object that holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml

from ..api import spaces
from ..api.errors import HarnessError
from ..api.kinds import SERVED, Kind
from ..gherkin import tables
from ..gherkin.tables import nearest
from ..scheduler.model import documents, input_files
from ..scheduler.policy.loader import texts_in
from ..terminal import top_of
from .nodes import SIMULATED, WORLD
from .templates import Object, Rendered

Part = TypeVar("Part")
Found = TypeVar("Found")

OVERRIDE = "scheduler_config_override"
"""The key of Volcano's chart whose value is the text of a policy."""
_KUEUE = SERVED[Kind.CLUSTERQUEUE].api_version
_OF_QUEUES = (
    *("ClusterQueue", "Cohort", "LocalQueue", "ResourceFlavor", "Topology"),
    *("WorkloadPriorityClass", "AdmissionCheck"),
)
_CHECKED_BY = "schedspec.dev/scenario"
"""Controller of AdmissionChecks in a scenario: its sentences."""
_RENAMED = {"cohort": "cohortName", "parent": "parentName"}
"""Fields of v1beta1, and their names since v1beta2."""
_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class ManifestError(HarnessError):
    """A manifest that does not exist, is not valid YAML, or has no object of the required kind."""


def folders_of(feature: Path, root: Path) -> tuple[Path, ...]:
    """Return the folders in which a file of a sentence may be: the feature's, the run's root, the working directory."""
    return tuple(dict.fromkeys((feature, root, Path.cwd())))


def find(name: str, folders: Sequence[Path]) -> Path:
    """Return the first file of that name in the folders; it must lie in the repository of one of them.

    Raises:
        ManifestError: No folder has the file, or it is outside, also by `..` or a link.
    """
    tops = [top_of(folder).resolve() for folder in folders]
    for path in (folder / name for folder in folders):
        if not path.exists() or path.is_dir():
            continue
        if not any(path.resolve().is_relative_to(top) for top in tops):
            raise ManifestError(f"the file {name!r} is outside of the repository {tops[0]}: copy it beside the feature")
        return path
    files = sorted({path.name for folder in folders for path in folder.glob("*.y*ml") if path.is_file()})
    looked = ", ".join(dict.fromkeys(str(folder) for folder in folders))
    raise ManifestError(f"there is no file {name!r}{nearest(name, files)}\n  looked in: {looked}")


def read(path: Path) -> str:
    """Return the text of a file. Raises ManifestError."""
    try:
        return input_files.read_text(path)
    except (OSError, UnicodeDecodeError) as problem:
        raise ManifestError(f"{path}: cannot read the file: {problem}") from None


def queues(path: Path) -> list[Rendered]:
    """Return the Queues of a file. Raises ManifestError."""
    return _objects(path, "Queue", lambda obj: {**head(obj), "spec": obj.get("spec") or {}})


def namespace_of(obj: Object) -> str:
    """Return the namespace of an object of a file."""
    return str(obj["metadata"].get("namespace") or "default")


def spaces_of(objects: Iterable[Object], path: Path) -> list[str]:
    """Return the namespaces of the namespaced objects of a file, each of which becomes one of the scenario.

    All objects of one namespace are in the scenario's own, so that the list is empty. Raises ManifestError.
    """
    found = sorted({*map(namespace_of, objects)})
    if len(found) > 1 and (long := next((it for it in found if len(it) > tables.LONGEST_SPACE), None)):
        most = f"namespaces of a scenario have at most {tables.LONGEST_SPACE} characters"
        raise ManifestError(f"{path}: the namespace {long} has {len(long)} characters\n  do next: shorten it; {most}")
    return found if len(found) > 1 else []


def kueue_queues(path: Path, namespace: str = "scenario") -> list[Rendered]:
    """Return the ClusterQueues, Cohorts, LocalQueues and ResourceFlavors of a file, for a scenario.

    LocalQueues are in the scenario's own namespace. If two have the same name, each is in the namespace of its file.
    Every ClusterQueue admits all namespaces of the scenario. The scenario has none of the controllers of
    AdmissionChecks, which sentences play.

    Args:
        path: The file.
        namespace: The scenario's own namespace.

    Raises:
        ManifestError: the file cannot be used.
    """
    text = read(path)
    found = [
        Rendered(_of_kueue(obj), path, text, node)
        for obj, node in _documents(path, text)
        if str(obj.get("apiVersion", "")).startswith(f"{_KUEUE.partition('/')[0]}/") and obj.get("kind") in _OF_QUEUES
    ]
    if not any(it.object["kind"] == "LocalQueue" for it in found):
        raise ManifestError(f"{path}: no LocalQueue ({_KUEUE}), to which jobs could be submitted")
    local = [it.object for it in found if it.object["kind"] == "LocalQueue"]
    local_names = [it["metadata"]["name"] for it in local]
    divided = len({*local_names}) < len(local_names) and spaces_of(local, path)
    for obj in local:
        space = namespace_of(obj)
        obj["metadata"].pop("namespace", None)
        if divided:
            obj["metadata"]["namespace"] = spaces.real(namespace, f"{space}/")[0]
    known = [(it.object["kind"], it.object["metadata"].get("namespace"), it.object["metadata"]["name"]) for it in found]
    if twice := next((name for name in known if known.count(name) > 1), None):
        raise ManifestError(f"{path}: two objects {twice[0]} {twice[2]}: rename one")
    checks = [name for kind, _, name in known if kind == "AdmissionCheck"]
    used = [(it, check) for it in found for check in _checks_of(it.object.get("spec") or {})]
    if missing := next(((it, check) for it, check in used if check not in checks), None):
        queue, check = missing
        place = f"{path}:{queue.node.start_mark.line + 1}: ClusterQueue {queue.object['metadata']['name']}"
        text = f"{place} names an admission check {check!r}, which the file does not have{nearest(check, checks)}"
        remedy = f"add it, because without it the queue admits nothing; there are: {', '.join(checks) or 'none'}"
        raise ManifestError(f"{text}\n  do next: {remedy}")
    return found


def _checks_of(spec: Object) -> list[str]:
    """Return the admission checks that a ClusterQueue names."""
    named = (spec.get("admissionChecksStrategy") or {}).get("admissionChecks") or ()
    return [str(it.get("name")) for it in named]


def _of_kueue(obj: Object) -> Object:
    """Return an object of Kueue in the version that is stored, without what only its own cluster has."""
    rest = {key: part for key, part in obj.items() if key not in ("metadata", "status")}
    found = {**rest, **head(obj), "apiVersion": _KUEUE}
    spec = dict(obj.get("spec") or {})
    for before, now in _RENAMED.items():
        if before in spec:
            spec[now] = spec.pop(before)
    if checks := spec.pop("admissionChecks", ()):  # of v1beta1
        spec["admissionChecksStrategy"] = {"admissionChecks": [{"name": name} for name in checks]}
    if obj["kind"] == "LocalQueue" and (space := (obj.get("metadata") or {}).get("namespace")):
        found["metadata"]["namespace"] = space
    if obj["kind"] == "ClusterQueue":
        spec["namespaceSelector"] = {}
    if obj["kind"] == "AdmissionCheck":
        spec = {"controllerName": _CHECKED_BY}
    return {**found, "spec": spec} if "spec" in obj else found


def nodes(path: Path) -> list[Rendered]:
    """Return the Nodes of a file as KWOK nodes. Raises ManifestError."""
    return _objects(path, "Node", _node)


def policy(path: Path) -> str:
    """Return the text of a scheduler's configuration: the file, or the text in a ConfigMap or a chart's values.

    A text in a larger file keeps its line numbers: empty lines stand for what is above it.

    Raises:
        ManifestError: The file cannot be read, or has no policy, or several.
    """
    text = read(path)
    nodes = _bounded(path, documents.compose, text)
    if any(_has(node, ("actions", "tiers", "default_scheduler_conf")) for node in nodes):
        return text
    found = [value for node in nodes for _, value in texts_in(node)]
    if len(found) == 1:
        above = found[0].start_mark.line + (found[0].style in ("|", ">"))
        return "\n" * above + str(found[0].value)
    if found or any(_has(node, ("kind",)) for node in nodes):
        raise ManifestError(f"{path}: {len(found) or 'no'} text of a key *.conf or *{OVERRIDE}; exactly one is needed")
    return text


def _has(node: yaml.nodes.Node, keys: Sequence[str]) -> bool:
    return isinstance(node, yaml.MappingNode) and any(key.value in keys for key, _ in node.value)


def _objects(path: Path, kind: str, keep: Callable[[Object], Object]) -> list[Rendered]:
    text = read(path)
    found = [Rendered(keep(obj), path, text, node) for obj, node in _documents(path, text) if obj.get("kind") == kind]
    if not found:
        raise ManifestError(f"{path}: no object of kind {kind}")
    return found


def _documents(path: Path, text: str) -> Iterator[tuple[Object, yaml.nodes.Node]]:
    """Yield the objects of a file, also those in a List, with their YAML nodes."""
    for node in _bounded(path, documents.compose, text):
        obj = _bounded(path, documents.construct, node)
        items = obj.get("items") if isinstance(obj, dict) and str(obj.get("kind", "")).endswith("List") else None
        for item in [obj] if items is None else items:
            if isinstance(item, dict):
                yield item, node


def _bounded(path: Path, read_part: Callable[[Part], Found], part: Part) -> Found:
    """Return what the bounded reader makes of a part of the file. Raises ManifestError."""
    try:
        return read_part(part)
    except documents.DocumentError as problem:
        raise ManifestError(f"{path}:{problem.line}: {problem.problem}\n  do next: {problem.remedy}") from None


def head(obj: Object) -> Object:
    """Return the identity of an object, and the labels and annotations that a user set."""
    metadata = obj.get("metadata") or {}
    meta: dict[str, Any] = {"name": metadata.get("name", "")}
    if metadata.get("labels"):
        meta["labels"] = dict(metadata["labels"])
    notes = {key: value for key, value in (metadata.get("annotations") or {}).items() if key != _APPLIED}
    return {
        "apiVersion": obj.get("apiVersion", ""),
        "kind": obj["kind"],
        "metadata": meta | ({"annotations": notes} if notes else {}),
    }


def _node(obj: Object) -> Object:
    """Return a KWOK node with the labels, resources and taints of a node, without the taints of an unready node."""
    node, spec, status = head(obj), obj.get("spec") or {}, obj.get("status") or {}
    node["metadata"].setdefault("labels", {})[WORLD] = "true"
    node["metadata"].setdefault("annotations", {})[SIMULATED] = "fake"
    taints = [
        taint for taint in spec.get("taints") or () if not str(taint.get("key", "")).startswith("node.kubernetes.io/")
    ]
    allocatable = status.get("allocatable") or status.get("capacity") or {}
    return {
        **node,
        "spec": {"taints": taints} | ({"unschedulable": True} if spec.get("unschedulable") else {}),
        "status": {"capacity": status.get("capacity") or allocatable, "allocatable": allocatable},
    }
