"""Read facts about pods and their templates for all controllers: requests, owners, exit codes.

The scheduler's code computes requests, so a gang's minResources are what the scheduler counts for its pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ...model import names, resources
from ...model.demand import requests_of
from ...model.objects import ObjectMeta, OwnerReference, Pod, PodSpec
from ...model.resources import Resource
from .objects import Template

MAX_BYTES = 128 * 1024
"""Maximum size of a template, which is copied for each of its pods."""


def controller_of(meta: ObjectMeta) -> OwnerReference | None:
    """Return the owner that manages the object, if one does."""
    return next((owner for owner in meta.owner_references or () if owner.controller), None)


class TemplateError(ValueError):
    """A pod template cannot be used. The text names the field."""


def check_size(templates: Iterable[Template]) -> None:
    """Check that each template is small enough to create pods from without blocking other work.

    Raises:
        TemplateError: A template is too large.
    """
    for template in templates:
        if (size := len(msgspec.json.encode(template))) > MAX_BYTES:
            message = f"template: {size:,} bytes, more than the maximum of {MAX_BYTES:,}"
            raise TemplateError(f"{message}; mount large content from a ConfigMap")


def copy_of(template: Template) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return copies of a template's metadata and spec. A copy through JSON is five times as fast as a deep copy."""
    copied: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(template))
    return copied.get("metadata") or {}, copied.get("spec") or {}


def request_of(template: Template) -> Resource:
    """Return the request of one pod of a template, in the model's units, without `pods`.

    Raises:
        TemplateError: The spec or an amount is invalid.
    """
    try:
        spec = msgspec.convert(template.get("spec", {}), PodSpec)
        request, _ = requests_of(Pod(ObjectMeta(), spec))
    except (msgspec.ValidationError, ValueError) as error:
        raise TemplateError(f"template.spec: {error}") from error
    return {name: amount for name, amount in request.items() if name != resources.PODS}


def exit_code(pod: Pod) -> int | None:
    """Return the exit code of the first container that failed; None if there is none."""
    for container in pod.status.container_statuses or ():
        if container.state and container.state.terminated and container.state.terminated.exit_code != 0:
            return container.state.terminated.exit_code
    return None


def restarts(pod: Pod) -> int:
    """Return how often the pod's containers were restarted on its node."""
    return sum(container.restart_count for container in pod.status.container_statuses or ())


def version_of(pod: Pod) -> int:
    """Return the version of the Job that the pod was created for; -1 without one."""
    found = (pod.metadata.annotations or {}).get(names.JOB_VERSION, "")
    return int(found) if found.isdecimal() else -1


def without_applied(annotations: Mapping[str, str] | None) -> dict[str, str]:
    """Return annotations to pass on: all except kubectl's copy of the original object."""
    return {key: value for key, value in (annotations or {}).items() if key != names.APPLIED}


def add_environment(spec: dict[str, Any], variables: Iterable[dict[str, Any]]) -> None:
    """Add variables to every container (init containers too), in place. The user's own values are kept."""
    wanted = list(variables)
    for container in [*spec.get("initContainers", ()), *spec.get("containers", ())]:
        given = {entry.get("name") for entry in container.get("env") or ()}
        container["env"] = [*(container.get("env") or ()), *(v for v in wanted if v["name"] not in given)]
