"""Admit pods as the plugins LimitRanger and ResourceQuota of an API server do, as far as they concern requests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...scheduler.model import resources
from ...scheduler.model.resources import Resource
from .store import Object, RefusedError

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
            group, _, resource = key.rpartition(".") if key.startswith(("requests.", "limits.")) else ("", "", key)
            group, resource = group or "requests", resource.removeprefix("count/")
            if resource in ("cpu", "memory") and resource not in wanted[group]:
                raise RefusedError(403, "Forbidden", f"failed quota: {name}: must specify {key}")
            most = resources.parse({resource: amount})[resource]
            needed = wanted[group].get(resource, 0)
            if needed and sum(one[group].get(resource, 0) for one in used) + needed > most:
                raise RefusedError(403, "Forbidden", f"exceeded quota: {name}, limited: {key}={amount}")


def _usage(pod: Object) -> dict[str, Resource]:
    """Return the requests, with one pod, and the limits of a pod."""
    found: dict[str, Resource] = {"requests": resources.parse({"pods": "1"}), "limits": {}}
    for container in pod["spec"].get("containers") or ():
        for group, before in found.items():
            own = resources.parse((container.get("resources") or {}).get(group) or {})
            found[group] = resources.plus(before, own)
    return found
