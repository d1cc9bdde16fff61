"""Demands of a pod's spec: its requests, its host ports, and the key that equal pods share.

All functions are pure. A task keeps their results, computed when the pod is first seen (`scheduler.model.task`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from . import names, resources
from .card_demand import CardDemand, counted
from .objects import Container, Pod
from .resources import Resource

HostPort = tuple[str, str, int]
"""Protocol, address, port."""
LONGEST_SHAPE = 4096
"""Maximum bytes of a shape that is kept unchanged."""
ANY_ADDRESS = ("", "0.0.0.0", "::")  # noqa: S104 (compared with, not bound to)


def host_ports_of(pod: Pod) -> tuple[HostPort, ...]:
    """Return the host ports that the pod needs."""
    return tuple(
        sorted(
            (port.protocol, port.host_ip, number)
            for container in (*pod.spec.containers, *(pod.spec.init_containers or ()))
            for port in container.ports or ()
            if (number := port.host_port or (port.container_port if pod.spec.host_network else 0))
        )
    )


class PortNumbers:
    """The host ports of one pod as sets, so that comparing two pods costs only as much as the pod with fewer ports."""

    __slots__ = ("every", "exact", "wild")

    def __init__(self, ports: Iterable[HostPort]) -> None:
        by_address: dict[tuple[str, str], set[int]] = {}
        for protocol, address, number in ports:
            by_address.setdefault((protocol, "" if address in ANY_ADDRESS else address), set()).add(number)
        self.exact = by_address
        """Protocol and address → ports; an empty address stands for all addresses."""
        self.wild = {protocol: numbers for (protocol, address), numbers in by_address.items() if not address}
        """Protocol → ports on all addresses."""
        self.every = self.wild
        """Protocol → ports, whatever their address."""
        if len(self.wild) != len(by_address):
            self.every = {}
            for (protocol, _), numbers in by_address.items():
                self.every[protocol] = self.every.get(protocol, set()) | numbers

    def clash(self, other: PortNumbers) -> bool:
        """Whether both pods use a port on overlapping addresses."""
        if _overlap(self.wild, other.every) or _overlap(self.every, other.wild):
            return True
        return self.every is not self.wild and other.every is not other.wild and _overlap(self.exact, other.exact)

    def uses(self, port: HostPort) -> bool:
        """Whether the port is used on an overlapping address."""
        protocol, address, number = port
        if address in ANY_ADDRESS:
            return number in self.every.get(protocol, ())
        return number in self.wild.get(protocol, ()) or number in self.exact.get((protocol, address), ())


def _overlap(mine: Mapping[Any, set[int]], theirs: Mapping[Any, set[int]]) -> bool:
    if len(theirs) < len(mine):
        mine, theirs = theirs, mine
    return any(not numbers.isdisjoint(theirs.get(key, ())) for key, numbers in mine.items())


def requests_of(pod: Pod, card_memory: int = 0) -> tuple[Resource, Resource]:
    """Return what the pod holds, and what it needs to start, by Kubernetes' rules for sidecars.

    Both are equal: a pod holds what its init containers need as long as it lives.

    Shares of virtual GPUs in percent are shares of `card_memory`; they do not count if that is 0.
    """
    running: Resource = {}
    for container in pod.spec.containers:
        resources.add_to(running, _request(container, card_memory))
    side_cars: Resource = {}
    starting: Resource = {}
    for container in pod.spec.init_containers or ():
        request = _request(container, card_memory)
        is_side_car = container.restart_policy == "Always"
        if is_side_car:
            resources.add_to(side_cars, request)
        # iterate only over this container's names: a pod may have hundreds of containers with many names each
        for name, amount in request.items():
            needed = side_cars[name] if is_side_car else side_cars.get(name, 0) + amount
            starting[name] = max(starting.get(name, 0), needed)
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


def _request(container: Container, card_memory: int) -> Resource:
    given = container.resources
    if given is None:
        return {}
    limits = resources.parse(given.limits)
    return counted({**limits, **resources.parse(given.requests)}, card_memory)


def shape_of(
    pod: Pod, request: Resource, init_request: Resource, missing: str = "", cards: CardDemand | None = None
) -> bytes:
    """Return a key that equal tasks share: requests, and all parts of spec and labels that determine suitable nodes.

    Long keys are hashed.
    """
    spec = pod.spec
    depends_on_pods = bool(
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
        pod.metadata.namespace if depends_on_pods or claimed else None,
        pod.metadata.name if any(v.ephemeral for v in claimed or ()) else None,  # its claims are named after the pod
        sorted((pod.metadata.labels or {}).items()) if depends_on_pods else None,
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
        *((missing,) if missing else ()),
        *((cards,) if cards is not None else ()),
    )
    shape = msgspec.json.encode(parts)
    return shape if len(shape) <= LONGEST_SHAPE else hashlib.blake2b(shape, digest_size=32).digest()
