"""Read TrainJobs of Kubeflow Trainer (`trainer.kubeflow.org/v1alpha1`) as the Jobs that the Trainer makes of them.

1. A TrainJob becomes a Job with a pod for each of its nodes. The pod is that of the replicated job of the step
   `trainer` in its training runtime, with the resources and the patches of the TrainJob. With a `podGroupPolicy`, all
   pods of the Job start together; without one, the Trainer makes no gang either.
2. A runtime is in the same file. `torch-distributed`, which the Trainer installs, need not be: it is one pod without
   requests.
3. A field that a scenario would not carry out is refused with its line. Commands, environment, processes per node and
   volumes belong to the image, which a scenario replaces; they are accepted.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ..gherkin.tables import nearest
from ..scheduler.lint.objects import Document, ManifestError

Object = dict[str, Any]
QUEUE: Final = "scheduling.volcano.sh/queue-name"
"""Annotation with the queue of a pod."""
MIN_MEMBER: Final = "scheduling.volcano.sh/group-min-member"
"""Annotation with the number of pods that start together."""
GROUP: Final = "trainer.kubeflow.org/"
API: Final = f"{GROUP}v1alpha1"
_RUNTIMES: Final = ("ClusterTrainingRuntime", "TrainingRuntime")
_USUAL: Final = "torch-distributed"
"""A runtime that the Trainer installs."""
_USUAL_POD: Final[Object] = {"spec": {"containers": [{"name": "node", "image": _USUAL}]}}
_STEP: Final = "trainer.kubeflow.org/trainjob-ancestor-step"
"""Label of the replicated job that trains."""
_CONTAINER: Final = "node"
"""The container that trains."""
_READ: Final = object()
"""A field that is carried out, or that belongs to the image."""
_TEXT: Final = object()
"""A field that is a text."""
_TEXTS: Final = object()
"""A field that maps names to texts."""


class _Only(NamedTuple):
    """A field that may have these values only."""

    values: Sequence[Any]


_METADATA: Final = {"name": _READ, "labels": _TEXTS, "annotations": _TEXTS}
_PLACES: Final = ("nodeSelector", "affinity", "tolerations")
_POD: Final = {
    **dict.fromkeys(_PLACES, _READ),
    **dict.fromkeys(("serviceAccountName", "volumes", "imagePullSecrets", "securityContext"), _READ),
    "containers": [dict.fromkeys(("name", "env", "volumeMounts", "securityContext"), _READ)],
}
"""Fields of pods that a TrainJob may patch; the second row belongs to the image."""
_PATCHED: Final = {"spec": {"template": {"metadata": _METADATA, "spec": _POD}}}
_OF_API: Final = dict.fromkeys(
    ("namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "finalizers"), _READ
)
_TRAIN_JOB: Final[Object] = {
    **dict.fromkeys(("apiVersion", "kind", "status"), _READ),
    "metadata": {**_OF_API, **_METADATA},
    "spec": {
        "runtimeRef": {"name": _TEXT, "kind": _Only(_RUNTIMES), "apiGroup": _Only([GROUP[:-1]])},
        "trainer": dict.fromkeys(
            ("image", "command", "args", "env", "numNodes", "resourcesPerNode", "numProcPerNode"), _READ
        ),
        "suspend": _Only([False]),
        "managedBy": _Only(["trainer.kubeflow.org/trainjob-controller"]),
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "podTemplateOverrides": [{"targetJobs": [{"name": _READ}], "metadata": _METADATA, "spec": _POD}],
        "runtimePatches": [
            {
                "manager": _READ,
                "time": _READ,
                "trainingRuntimeSpec": {
                    "template": {"spec": {"replicatedJobs": [{"name": _READ, "template": _PATCHED}]}}
                },
            }
        ],
    },
}
_RUNTIME: Final[Object] = {
    **dict.fromkeys(("apiVersion", "kind"), _READ),
    "metadata": {**_OF_API, **_METADATA},
    "spec": {
        "mlPolicy": {"numNodes": _READ, "torch": {"numProcPerNode": _READ}},
        "podGroupPolicy": {"coscheduling": {}, "volcano": {}},
        "template": {
            "metadata": _METADATA,
            "spec": {
                "network": _READ,
                "replicatedJobs": [
                    {
                        "name": _READ,
                        "replicas": _Only([1]),
                        "template": {
                            "metadata": _METADATA,
                            "spec": {"template": {"metadata": _METADATA, "spec": _READ}},
                        },
                    }
                ],
            },
        },
    },
}
_NOT_YET: Final = (
    *("initializer", "activeDeadlineSeconds", "elasticPolicy", "mpi", "flux", "scheduleTimeoutSeconds"),
    *("networkTopology", "initContainers", "schedulingGates", "successPolicy", "failurePolicy", "startupPolicy"),
    *("parallelism", "completions", "completionMode", "backoffLimit", "podFailurePolicy", "ttlSecondsAfterFinished"),
)
"""Fields that the Trainer knows and a scenario does not carry out."""


def as_jobs(documents: Iterator[Document]) -> Iterator[Document]:
    """Yield the objects of a file with its TrainJobs as Jobs, and without training runtimes.

    Raises:
        ManifestError: a TrainJob or a runtime has a field that is not carried out, or no runtime, or no job uses it.
    """
    jobs, runtimes, used = [], {}, set()
    for document in documents:
        kind = document.item.get("kind") if str(document.item.get("apiVersion", "")).startswith(GROUP) else ""
        if kind == "TrainJob":
            jobs.append(document)
        elif kind in _RUNTIMES:
            runtimes[kind, document.name[-1] if document.name else ""] = document
        else:
            yield document
    for job in jobs:
        _check(job, _TRAIN_JOB)
        ref = _at(job.item, "spec", "runtimeRef")
        key = ref.get("kind") or _RUNTIMES[0], ref.get("name")
        if key not in runtimes and key != (_RUNTIMES[0], _USUAL):
            known = [name for _, name in runtimes]
            text = f"the file has no {key[0]} {key[1]}{nearest(str(key[1]), known)}"
            raise _error(job, ("spec", "runtimeRef", "name"), text, "add it to this file")
        used.add(key)
        yield _job_of(job, runtimes.get(key))
    for key, runtime in runtimes.items():
        if key not in used:
            raise ManifestError(runtime.line, f"{runtime.title}: no TrainJob of this file uses it", "remove it")


def _check(document: Document, shape: Object) -> None:
    if document.item.get("apiVersion") != API:
        text = f"{document.title} is of {document.item['apiVersion']}"
        raise ManifestError(document.line, text, f"write apiVersion: {API}")
    for path, text, remedy in _flaws(document.item, shape, ()):
        raise _error(document, path, text, remedy)


Flaw = tuple[tuple[str | int, ...], str, str]
"""Path, problem and remedy."""


def _flaws(part: Any, shape: Any, path: tuple[str | int, ...]) -> Iterator[Flaw]:
    """Yield each field that is not carried out, or has a value of another form."""
    if isinstance(shape, list) and isinstance(part, list):
        for number, item in enumerate(part):
            yield from _flaws(item, shape[0], (*path, number))
    elif isinstance(shape, dict) and isinstance(part, dict):
        for name, field in part.items():
            if name in shape:
                yield from _flaws(field, shape[name], (*path, name))
            elif name in _NOT_YET:
                yield (*path, name), "is not carried out here", "leave it out"
            else:
                yield (*path, name), f"unknown field{nearest(str(name), shape)}", f"write one of {', '.join(shape)}"
    elif isinstance(shape, _Only) and not any(type(part) is type(value) and part == value for value in shape.values):
        known = " or ".join(str(value).lower() if value is False else str(value) for value in shape.values)
        yield path, f"{part} is not carried out here", f"write {known}, or leave it out"
    elif isinstance(shape, dict | list):
        yield path, f"must be {'a list' if isinstance(shape, list) else 'an object with fields'}", "correct it"
    elif (shape is _TEXT and not isinstance(part, str)) or (shape is _TEXTS and not _maps_texts(part)):
        yield path, f"must {'be a text' if shape is _TEXT else 'map names to texts'}", "quote numbers, true and false"


def _maps_texts(part: Any) -> bool:
    return isinstance(part, dict) and all(isinstance(text, str) for text in (*part, *part.values()))


def _error(document: Document, path: tuple[str | int, ...], text: str, remedy: str) -> ManifestError:
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return ManifestError(document.line_of(path), f"{document.title}{field}: {text}", remedy)


def _at(item: Any, *path: str) -> Object:
    """Return the fields at a path, without fields if there are none."""
    for part in path:
        item = (item.get(part) if isinstance(item, dict) else None) or {}
    return item if isinstance(item, dict) else {}


def _job_of(job: Document, runtime: Document | None) -> Document:
    """Return the Job that the Trainer makes of a TrainJob."""
    spec, of_runtime = _at(job.item, "spec"), _at(runtime.item, "spec") if runtime is not None else {}
    marks: dict[str, Object] = {"labels": {}, "annotations": {}}
    name, template = _CONTAINER, copy.deepcopy(_USUAL_POD)
    if runtime is not None:
        _check(runtime, _RUNTIME)
        name, template = _trainer_of(runtime)
        _add(marks, _at(of_runtime, "template", "metadata"))
    _add(marks, _at(job.item, "metadata"))
    _add(marks, spec)
    number = _nodes(job, runtime)
    for patch in _patches(job, name):
        _add(template.setdefault("metadata", {}), _at(patch, "metadata"))
        template["spec"] |= {key: value for key, value in _at(patch, "spec").items() if key in _PLACES}
    for container in template["spec"]["containers"]:
        if _at(container).get("name") == _CONTAINER and "resourcesPerNode" in _at(spec, "trainer"):
            container["resources"] = spec["trainer"]["resourcesPerNode"]
    if of_runtime.get("podGroupPolicy") is not None:  # our controller reads it from pods, Volcano's from Jobs
        for it in (marks, template.setdefault("metadata", {})):
            _add(it, {"annotations": {MIN_MEMBER: str(number)}})
    if queue := marks["annotations"].get(QUEUE):
        template.setdefault("metadata", {}).setdefault("annotations", {}).setdefault(QUEUE, queue)
    template["spec"].setdefault("restartPolicy", "Never")
    metadata = {**_at(job.item, "metadata"), **{key: found for key, found in marks.items() if found}}
    made = {"parallelism": number, "completions": number, "template": template}
    return job._replace(item={"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": made})


def _add(marks: Object, metadata: Mapping[str, Any]) -> None:
    for kind in ("labels", "annotations"):
        if metadata.get(kind):
            marks[kind] = {**(marks.get(kind) or {}), **metadata[kind]}


def _trainer_of(runtime: Document) -> tuple[str, Object]:
    """Return name and pod template of the replicated job that trains."""
    path = ("spec", "template", "spec", "replicatedJobs")
    jobs = _at(runtime.item, *path[:-1]).get("replicatedJobs") or []
    steps = [_at(job, "template", "metadata", "labels").get(_STEP) for job in jobs]
    others = [number for number, step in enumerate(steps) if step != "trainer"]
    if others or len(jobs) != 1:
        at = (*path, others[0]) if others else path
        text = f"a runtime has one replicated job here, with the label {_STEP}: trainer"
        raise _error(runtime, at, text, "remove the other jobs, such as initializers, or add the label")
    template = copy.deepcopy(_at(jobs[0], "template", "spec", "template"))
    containers = _at(template, "spec").get("containers")
    names = [it["name"] for it in containers if _at(it).get("name")] if isinstance(containers, list) else []
    if _CONTAINER not in names:
        text = f"no container is named {_CONTAINER}, which is the one that trains"
        raise _error(runtime, (*path, 0, "template", "spec", "template", "spec", "containers"), text, "rename it")
    return str(jobs[0].get("name")), template


def _nodes(job: Document, runtime: Document | None) -> int:
    """Return the number of nodes: that of the TrainJob, else that of its runtime, else 1."""
    for document, path in ((job, ("spec", "trainer", "numNodes")), (runtime, ("spec", "mlPolicy", "numNodes"))):
        number = _at(document.item, *path[:-1]).get("numNodes") if document is not None else None
        if number is not None and document is not None:
            if not isinstance(number, int) or isinstance(number, bool) or number < 1:
                raise _error(document, path, f"{number} is no number of nodes", "write 1 or more")
            return number
    return 1


def _patches(job: Document, name: str) -> Iterator[Object]:
    """Yield the patches of the pods that train, the later ones after the earlier ones."""
    spec = _at(job.item, "spec")
    for number, patch in enumerate(spec.get("podTemplateOverrides") or ()):
        targets = [it.get("name") for it in patch.get("targetJobs") or ()]
        _require_job(job, ("spec", "podTemplateOverrides", number, "targetJobs"), targets, name)
        yield patch
    for number, patch in enumerate(spec.get("runtimePatches") or ()):
        path = ("trainingRuntimeSpec", "template", "spec")
        jobs = _at(patch, *path).get("replicatedJobs") or []
        _require_job(job, ("spec", "runtimePatches", number, *path), [it.get("name") for it in jobs], name)
        yield from (_at(it, "template", "spec", "template") for it in jobs)


def _require_job(job: Document, path: tuple[str | int, ...], names: Sequence[str], name: str) -> None:
    if other := next((it for it in names if it != name), None):
        raise _error(job, path, f"the runtime has no replicated job {other}", f"name {name}")
