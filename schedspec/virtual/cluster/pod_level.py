"""Resources of a pod as a whole (`spec.resources`): their defaults, and the amounts that an API server refuses."""

from __future__ import annotations

from ...scheduler.model import resources
from ...scheduler.model.resources import Resource
from .store import Object, RefusedError


def of_containers(spec: Object, group: str = "requests") -> Resource:
    """Return what the containers of a pod need together, with the larger needs of its init containers."""
    found, side_cars, starting = Resource(), Resource(), Resource()
    for container in spec.get("containers") or ():
        resources.add_to(found, _amounts(container, group))
    for container in spec.get("initContainers") or ():
        needed = resources.plus(side_cars, _amounts(container, group))
        side_cars = needed if container.get("restartPolicy") == "Always" else side_cars
        starting = resources.largest(starting, needed)
    return resources.largest(resources.plus(found, side_cars), starting)


def admitted(spec: Object) -> Object:
    """Return the spec with the requests of the pod that its limits and its containers imply.

    A resource that the pod limits or does not name is requested as the containers request it, else as its limit.

    Raises:
        RefusedError: the pod requests less than its containers, or a container may use more than the pod.
    """
    given = spec.get("resources") or {}
    if not given:
        return spec
    limits, needed = resources.parse(given.get("limits") or {}), of_containers(spec)
    requests = resources.parse(given.get("requests") or {})
    if limits:
        own = {name: amount for name, amount in needed.items() if _is_of_pods(name)}
        requests = {**limits, **own, **requests}
    for name, amount in requests.items():
        if needed.get(name, 0) > amount:
            least = resources.render_amount(name, needed[name])
            _refuse(f"requests.{name}", f"must be greater than or equal to aggregate container requests of {least}")
        if amount > limits.get(name, amount):
            _refuse(f"requests.{name}", "must be less than or equal to the limit of the pod")
    for container in spec.get("containers") or ():
        for name, amount in resources.parse((container.get("resources") or {}).get("limits") or {}).items():
            if amount > limits.get(name, amount):
                _refuse(f"limits.{name}", f"container {container.get('name')} may not have a larger limit")
    return {**spec, "resources": {**given, "requests": resources.quantities(requests)}} if requests else spec


def _is_of_pods(name: str) -> bool:
    return name in (resources.CPU, resources.MEMORY)


def _amounts(container: Object, group: str) -> Resource:
    return resources.parse((container.get("resources") or {}).get(group) or {})


def _refuse(field: str, text: str) -> None:
    path = f"spec.resources.{field}"
    raise RefusedError(422, "Invalid", f"Pod is invalid: {path}: {text}", [path])
