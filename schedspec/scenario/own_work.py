"""Read work from a team's own manifests: Jobs, VolcanoJobs, PyTorchJobs, TrainJobs, services, pods, PodGroups.

1. `read` refuses what the API server would refuse, and what is no work, with file and line. Plans read work with it.
2. `rendered` returns the objects as a scenario submits them: in its namespace, for the scheduler under test, with the
   worker as the image of each container, and with the values of a table in place of those of the file.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import yaml

from ..api import spaces
from ..api.kinds import SERVED, Kind, kind_of
from ..gherkin.tables import BY_RESOURCE, nearest
from ..observe.view import WORKLOAD
from ..scheduler.lint.objects import Document, ManifestError, documents, refusals
from ..scheduler.model import resources
from ..scheduler.model.input_files import read_text
from . import train_jobs
from .manifests import ManifestError as UnusableError
from .manifests import head, namespace_of, spaces_of
from .templates import Rendered
from .train_jobs import MIN_MEMBER, QUEUE

Object = dict[str, Any]
LOCAL_QUEUE, WORKLOAD_CLASS = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"
"""The labels by which work and its pods name a queue and a priority class of Kueue."""
WORK = (Kind.POD, Kind.DEPLOYMENT, Kind.STATEFULSET, Kind.JOB, Kind.VCJOB, Kind.PYTORCHJOB, Kind.PODGROUP)
BESIDE = (Kind.PRIORITYCLASS, Kind.RESOURCEQUOTA, Kind.LIMITRANGE)
"""Kinds that a file of work may have beside it."""
_DROPPED = (
    "command",
    "args",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
    "volumeMounts",
    "envFrom",
)
"""Fields of containers that belong to their image."""
_OF_CLUSTER = ("serviceAccountName", "serviceAccount", "imagePullSecrets", "volumes", "nodeName")
"""Fields of pods that name objects which a scenario does not have."""


class WorkError(UnusableError):
    """An object that is no work, or that the API server would refuse."""

    def __init__(self, place: str, problem: str, remedy: str) -> None:
        super().__init__(f"{place}: {problem}\n  do next: {remedy}")
        self.place, self.problem, self.remedy = place, problem, remedy


class Found(NamedTuple):
    """An object of a file, its place, its YAML node, and its namespace in a scenario."""

    place: str
    item: Object
    node: yaml.Node
    space: str = ""
    """The further namespace of the scenario in which the object is; empty for the scenario's own."""

    @property
    def is_namespaced(self) -> bool:
        return self.kind is not None and SERVED[self.kind].namespaced

    @property
    def name(self) -> str:
        """Return the name of the object in a scenario."""
        name = str(self.item["metadata"]["name"])
        return f"{self.space}/{name}" if self.space else name

    @property
    def kind(self) -> Kind | None:
        return kind_of(self.item)


def read(
    path: Path, kinds: Collection[Kind] = WORK, group: str = "", definitions: Path | None = None
) -> Iterator[Found]:
    """Yield the objects of a file.

    Args:
        path: The file.
        kinds: The kinds that are accepted.
        group: An API group of which every kind is accepted; empty if there is none.
        definitions: The folder of the definitions of that group.

    Raises:
        WorkError: the file cannot be read, or has an object that is not accepted.
    """
    try:
        for document in train_jobs.as_jobs(documents(read_text(path))):
            in_group = bool(group) and str(document.item.get("apiVersion", "")).startswith(group)
            _check(document, path, kinds, definitions if in_group else None, in_group=in_group)
            yield Found(f"{path}:{document.line}", document.item, document.node)
    except ManifestError as error:
        raise WorkError(f"{path}:{error.line}", error.problem, error.remedy) from error
    except (OSError, UnicodeDecodeError) as error:
        raise WorkError(str(path), f"cannot be read: {error}", "name a file with the work to submit") from error


def _check(document: Document, path: Path, kinds: Collection[Kind], folder: Path | None, *, in_group: bool) -> None:
    place, item = f"{path}:{document.line}", document.item
    if not document.name:
        raise WorkError(place, f"{document.title}: it has no name", "write metadata.name")
    for refusal in refusals(document, str(path), folder):
        if refusal.is_error:
            raise WorkError(f"{path}:{refusal.line}", f"{refusal.field}: {refusal.text}", refusal.remedy)
    for pod in pod_specs(item):
        _check_pod(place, pod)
    if kind_of(item) not in kinds and not in_group:
        known = ", ".join(f"{SERVED[kind].kind} ({SERVED[kind].api_version})" for kind in kinds)
        title = f"{item.get('kind') or 'an object without a kind'} ({item.get('apiVersion', '')})"
        raise WorkError(place, f"{title} is not work", f"submit {known}")
    needs_pods = kind_of(item) in (*WORK, Kind.WORKLOAD) and kind_of(item) is not Kind.PODGROUP
    lacks = not [*pod_specs(item)] if item["kind"] == "Workload" else not isinstance(item.get("spec"), dict)
    if (needs_pods or kind_of(item) is Kind.PODGROUP) and lacks:
        raise WorkError(place, f"{document.title} has no pods", "write them into its spec")


def pod_specs(item: Any) -> Iterator[Object]:
    """Yield the specifications of pods in an object: everything that has containers."""
    if isinstance(item, dict):
        if isinstance(item.get("containers"), list):
            yield item
        for part in item.values():
            yield from pod_specs(part)
    elif isinstance(item, list):
        for part in item:
            yield from pod_specs(part)


def _check_pod(place: str, pod: Object) -> None:
    if pod.get("nodeName"):
        raise WorkError(place, f"nodeName: no scheduler decides on a pod of {pod['nodeName']}", "leave it out")
    for container in (*pod["containers"], *(pod.get("initContainers") or ())):
        given = container.get("resources") or {}
        if not isinstance(given, dict):
            raise WorkError(
                place, f"container {container.get('name')}: resources are {given}", "write requests, limits"
            )
        for amounts in given.values():
            try:
                resources.parse(amounts if isinstance(amounts, dict) else {})
            except resources.QuantityError as error:
                raise WorkError(place, f"container {container.get('name')}: {error}", "correct the amount") from error


# ---------------------------------------------------------------------------------------------------------- as ours


def names(found: Sequence[Found]) -> list[str]:
    """Return the names of the work among these objects, without groups whose pods are in the file as well."""
    return [it.name for it in found if it.kind in WORK and it.kind is not Kind.PODGROUP]


def numbered(stem: str, count: int) -> list[str]:
    """Return `stem-0`, `stem-1` and so on, as controllers number the pods that they name."""
    return [f"{stem}-{number}" for number in range(count)]


def generated(name: str, kind: Kind) -> list[str]:
    """Return patterns of the pods of a Deployment or a Kubernetes Job: the API server makes up five letters."""
    return [f"{name}-*-*"] if kind is Kind.DEPLOYMENT else [f"{name}-?????", f"{name}-[0-9]*-?????"]


def pods(found: Sequence[Found]) -> Iterator[str]:
    """Yield the names of the pods of this work, or patterns of them."""
    for it in found:
        name, spec = it.name, it.item.get("spec") or {}
        match it.kind:
            case Kind.POD:
                yield name
            case Kind.DEPLOYMENT | Kind.JOB as kind:
                yield from generated(name, kind)
            case Kind.STATEFULSET:
                yield from numbered(name, spec.get("replicas", 1))
            case Kind.VCJOB:
                for index, task in enumerate(spec.get("tasks") or ()):
                    yield from numbered(f"{name}-{task.get('name') or f'default{index}'}", task.get("replicas", 1))
            case Kind.PYTORCHJOB:
                for role, replica in (spec.get("pytorchReplicaSpecs") or {}).items():
                    yield from numbered(f"{name}-{role.lower()}", replica.get("replicas", 1))


def queues(found: Sequence[Found], *, of_kueue: bool = False) -> Iterator[tuple[str, str]]:
    """Yield name and queue of each object that names a queue, of Volcano or of Kueue."""
    for it in found:
        labels = it.item["metadata"].get("labels") or {}
        if queue := str((of_kueue and labels.get(LOCAL_QUEUE)) or _queue_of(it)):
            yield it.name, queue


def _queue_of(found: Found) -> str:
    spec = found.item.get("spec") or {}
    if found.kind is Kind.PYTORCHJOB:
        return str(((spec.get("runPolicy") or {}).get("schedulingPolicy") or {}).get("queue") or "")
    templates = [found.item] if found.kind is Kind.POD else [spec.get("template") or {}]
    marked = ((it.get("metadata") or {}).get("annotations") or {} for it in templates if isinstance(it, dict))
    return str(spec.get("queue") or next((marks[QUEUE] for marks in marked if marks.get(QUEUE)), ""))


def of_file(path: Path) -> list[Found]:
    """Return the objects of a file of work for a scenario, in several namespaces if the file has several.

    Raises WorkError, ManifestError.
    """
    found = [*read(path, (*WORK, *BESIDE))]
    if not names(found):
        raise WorkError(str(path), "has no work", "write jobs, services or pods into it")
    if not spaces_of((it.item for it in found if it.is_namespaced), path):
        return found
    return [it._replace(space=namespace_of(it.item)) if it.is_namespaced else it for it in found]


def rendered(
    path: Path, namespace: str, common: Mapping[str, object], rows: Sequence[Mapping[str, object]] = ()
) -> list[Rendered]:
    """Return the objects of a file as a scenario submits them.

    Args:
        path: The file.
        namespace: The namespace of the scenario.
        common: `scheduler_name` and `image` of the run.
        rows: Values in place of those of the file: `name` of the work (of all without one), and its columns.

    Raises:
        WorkError: the file cannot be used, or has nothing that a value could replace.
    """
    found, text = of_file(path), read_text(path)
    known = names(found)
    for row in rows:
        if row.get("name", known[0]) not in known:
            raise WorkError(
                str(path),
                f"has no work {row['name']}{nearest(str(row['name']), known)}",
                f"name one of {', '.join(known)}",
            )
    made = []
    for it in found:
        obj = _ours(it, namespace, common)
        for row in rows:
            if it.kind in WORK and row.get("name", it.name) == it.name:
                _override(it, obj, row)
        made.append(Rendered(obj, path, text, it.node))
    return made


def _ours(found: Found, namespace: str, common: Mapping[str, object]) -> Object:
    rest = {key: part for key, part in found.item.items() if key not in ("apiVersion", "kind", "metadata", "status")}
    obj = {**head(found.item), **copy.deepcopy(rest)}
    kind = found.kind
    if kind is not None and SERVED[kind].namespaced:
        obj["metadata"]["namespace"], _ = spaces.real(namespace, found.name)
    name = str(obj["metadata"]["name"])
    for template in _templates(kind, obj):
        template.setdefault("metadata", {}).setdefault("labels", {})[WORKLOAD] = name
        _make_ours(template["spec"], common)
    if kind is Kind.VCJOB:
        obj["spec"]["schedulerName"] = common["scheduler_name"]
    return obj


def _templates(kind: Kind | None, obj: Object) -> list[Object]:
    spec = obj.get("spec") or {}
    match kind:
        case Kind.POD:
            return [obj]
        case Kind.VCJOB:
            return [task["template"] for task in spec.get("tasks") or ()]
        case Kind.PYTORCHJOB:
            return [it["template"] for it in (spec.get("pytorchReplicaSpecs") or {}).values()]
        case Kind.DEPLOYMENT | Kind.STATEFULSET | Kind.JOB:
            return [spec["template"]]
    return []


def _make_ours(pod: Object, common: Mapping[str, object]) -> None:
    for field in _OF_CLUSTER:
        pod.pop(field, None)
    pod["schedulerName"] = common["scheduler_name"]
    for group, command in (("containers", ["/worker", "run"]), ("initContainers", ["/worker", "run", "--for", "0"])):
        for container in pod.get(group) or ():
            for field in _DROPPED:
                container.pop(field, None)
            container |= {"image": common["image"], "imagePullPolicy": "IfNotPresent", "command": command}


def _override(found: Found, obj: Object, row: Mapping[str, object]) -> None:
    """Set the fields that the columns of a row stand for."""
    kind, templates = found.kind, _templates(found.kind, obj)
    for column, value in row.items():
        if column in _OF_GROUP and kind in (Kind.VCJOB, Kind.PYTORCHJOB, Kind.PODGROUP):
            field, in_training = _OF_GROUP[column]
            _policy(kind, obj)[in_training if kind is Kind.PYTORCHJOB else field] = value
        elif column == "min_available":
            text = f"a {obj['kind']} has no min available"
            raise WorkError(found.place, text, "remove the column, or name other work")
        if column == "replicas":
            _set_replicas(found, obj, value)
        for it in templates:
            _set_in_pod(it, column, value)


_OF_GROUP = {
    "queue": ("queue", "queue"),
    "priority": ("priorityClassName", "priorityClass"),
    "min_available": ("minAvailable", "minAvailable"),
}
"""Parameters that jobs have as a whole, and their fields; the second one is that of PyTorchJobs."""


def _policy(kind: Kind | None, obj: Object) -> Object:
    spec: Object = obj["spec"]
    if kind is not Kind.PYTORCHJOB:
        return spec
    policy: Object = spec.setdefault("runPolicy", {}).setdefault("schedulingPolicy", {})
    return policy


def _set_in_pod(template: Object, column: str, value: object) -> None:
    pod = template["spec"]
    match column:
        case "queue":
            template["metadata"].setdefault("annotations", {})[QUEUE] = value
        case "priority":
            pod["priorityClassName"] = value
        case "node_selector":
            pod["nodeSelector"] = value
        case "tolerates":
            pod["tolerations"] = [{"key": key, "operator": "Exists"} for key in cast("list[str]", value)]
        case "cpu" | "memory":
            request(pod["containers"][0], {column: value})
        case str(name) if name == BY_RESOURCE:
            request(pod["containers"][0], cast("dict[str, object]", value))


def _set_replicas(found: Found, obj: Object, value: object) -> None:
    spec = obj["spec"]
    if found.kind in (Kind.DEPLOYMENT, Kind.STATEFULSET):
        spec["replicas"] = value
    elif found.kind is Kind.VCJOB and len(spec.get("tasks") or ()) == 1:
        spec["tasks"][0]["replicas"] = value
    elif found.kind is Kind.JOB:
        spec.pop("completions", None)
        spec["parallelism"] = value
        for it in (obj, spec["template"]):
            marks = (it.get("metadata") or {}).get("annotations") or {}
            if MIN_MEMBER in marks:  # a gang of all its pods
                marks[MIN_MEMBER] = str(value)
    elif found.kind is Kind.PYTORCHJOB and "Worker" in (spec.get("pytorchReplicaSpecs") or {}):
        spec["pytorchReplicaSpecs"]["Worker"]["replicas"] = value
    else:
        raise WorkError(found.place, "has no single number of replicas", "remove the column, or name other work")


def request(container: Object, amounts: Mapping[str, object]) -> None:
    """Set the requests of a container, and its limits where it has them or an extended resource needs them."""
    both = container.setdefault("resources", {})
    for name, amount in amounts.items():
        both.setdefault("requests", {})[name] = amount
        if "/" in name or name in (both.get("limits") or {}):
            both.setdefault("limits", {})[name] = amount
