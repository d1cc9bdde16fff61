"""What a pod's spec asks for: how much of what, which ports, and what makes two pods alike.

The one rule: functions of the pod alone, each computed once when the pod is first seen (:mod:`scheduler.model.task`).
"""

from __future__ import annotations

import msgspec

from . import names, resources
from .objects import Container, Pod
from .resources import Resource

HostPort = tuple[str, str, int]
"""Protocol, address, port."""


def host_ports_of(pod: Pod) -> tuple[HostPort, ...]:
    """The ports of the node that the pod wants for itself."""
    return tuple(
        sorted(
            (port.protocol, port.host_ip, number)
            for container in (*pod.spec.containers, *(pod.spec.init_containers or ()))
            for port in container.ports or ()
            if (number := port.host_port or (port.container_port if pod.spec.host_network else 0))
        )
    )


def requests_of(pod: Pod) -> tuple[Resource, Resource]:
    """What the pod holds while it runs, and what it needs to start: the rules of Kubernetes, side-car containers
    included.
    """
    running: Resource = {}
    for container in pod.spec.containers:
        resources.add_to(running, _request(container))
    side_cars: Resource = {}
    starting: Resource = {}
    for container in pod.spec.init_containers or ():
        if container.restart_policy == "Always":
            resources.add_to(side_cars, _request(container))
            needed = dict(side_cars)
        else:
            needed = resources.plus(side_cars, _request(container))
        starting = resources.largest(starting, needed)
    resources.add_to(running, side_cars)
    if pod.spec.resources is not None and pod.spec.resources.requests:  # pod-level requests replace the containers' sum
        running = {**running, **resources.parse(pod.spec.resources.requests)}
        starting = {n: v for n, v in starting.items() if n not in pod.spec.resources.requests}
    starting = resources.largest(running, starting)
    overhead = resources.parse(pod.spec.overhead)
    for total in (running, starting):
        resources.add_to(total, overhead)
        total[resources.PODS] = 1
    running, starting = resources.cut(running), resources.cut(starting)
    return starting if pod.spec.init_containers else running, starting


def _request(container: Container) -> Resource:
    given = container.resources
    if given is None:
        return {}
    limits = resources.parse(given.limits)
    return {**limits, **resources.parse(given.requests)}


def shape_of(pod: Pod, request: Resource, init_request: Resource) -> bytes:
    """A key that equal tasks share: requests, and all of the spec (and labels, where pods look at pods) that decides
    where.
    """
    spec = pod.spec
    looks_at_pods = bool(
        spec.topology_spread_constraints
        or (spec.affinity and (spec.affinity.pod_affinity or spec.affinity.pod_anti_affinity))
    )
    claimed = [v for v in spec.volumes or () if v.persistent_volume_claim or v.ephemeral or v.disk] or None
    parts = (
        sorted(request.items()),
        sorted(init_request.items()) if init_request != request else None,
        sorted(spec.node_selector.items()) if spec.node_selector else None,
        spec.affinity,
        spec.tolerations,
        spec.topology_spread_constraints,
        host_ports_of(pod),
        claimed,
        pod.metadata.namespace if looks_at_pods or claimed else None,
        pod.metadata.name if any(v.ephemeral for v in claimed or ()) else None,  # its claims are named after the pod
        sorted((pod.metadata.labels or {}).items()) if looks_at_pods else None,
        spec.resource_claims,
        spec.workload_ref,
        spec.scheduling_group,
        spec.os and spec.os.name,
        spec.host_network and spec.host_users is False,
        [c.resources.claims for c in spec.containers if c.resources and c.resources.claims] or None,
        [c.restart_policy_rules for c in (*spec.containers, *(spec.init_containers or ())) if c.restart_policy_rules]
        or None,
        (pod.metadata.annotations or {}).get(names.CARD_NAME),
        sorted(c.image for c in spec.containers),
    )
    return msgspec.json.encode(parts)
