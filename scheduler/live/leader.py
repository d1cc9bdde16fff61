"""Leader election: of several replicas, only the holder of a Lease schedules.

The one rule: a replica writes only while its own clock proves that no other replica can hold the lease. The proof is
checked right before each write (`Leader.may_write`), so a replica that was frozen stops writing when it continues.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable

from ..kube import (
    AlreadyExists,
    ApiError,
    Client,
    Conflict,
    Connection,
    Http,
    KubeError,
    NotFound,
    Resource,
)
from ..kube.backoff import spread
from ..model.objects import Object, ObjectMeta
from ..model.times import micro_timestamp
from .options import Options

log = logging.getLogger(__name__)

NAME = "schedspec"
_SAFE = 2 / 3
"""Fraction of the lease duration, counted from the start of the last renewal, in which this replica writes. The
remainder covers requests in flight and differences between clocks.
"""
_RELEASE_WITHIN = 2.0
"""Maximum seconds for the release of the lease: a process that stops does not wait for a silent API server."""


class LeaseSpec(Object):
    holder_identity: str = ""
    lease_duration_seconds: int = 0
    renew_time: str | None = None
    lease_transitions: int = 0


class Lease(Object):
    metadata: ObjectMeta
    spec: LeaseSpec


LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease", Lease)


class Leader:
    """One replica's candidacy in the election.

    `seconds` is the duration of the lease: another replica takes over that long after a crash.
    """

    def __init__(
        self,
        client: Client,
        identity: str,
        namespace: str,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
        *,
        name: str = NAME,
    ) -> None:
        self.identity = identity
        self._client = client
        self._name = name
        self._namespace = namespace
        self._seconds = seconds
        self._clock = clock
        self._proved = float("-inf")
        """When this replica began the attempt that last acquired or renewed the lease, by our clock."""
        self._answered = float("-inf")
        """When the API server last answered a request about the lease, with any result."""
        self._other: tuple[str, str] = ("", "")
        """The other replica that holds the lease, and the time of its last renewal by its own clock."""
        self._other_seen = 0.0
        """When this replica first saw that renewal, by our clock; clocks may differ."""

    def may_write(self) -> bool:
        """Return True if this replica certainly holds the lease now."""
        return self._clock() - self._proved < self._seconds * _SAFE

    @property
    def is_answered(self) -> bool:
        """Whether the API server currently answers requests about the lease."""
        return self._clock() - self._answered < self._seconds / 2

    async def elected(self) -> None:
        """Wait until this replica holds the lease."""
        while True:
            try:
                if await self._try():
                    log.info("leading as %s", self.identity)
                    return
            except (KubeError, TimeoutError) as error:
                log.info("no lease: %s", error)
            await asyncio.sleep(spread(0.8, 1.2) * min(1.0, self._seconds / 10))

    async def hold(self) -> None:
        """Renew the lease. Returns when it is lost."""
        while self.may_write():
            await asyncio.sleep(self._seconds / 6)
            try:
                if not await self._try():
                    return
            except (KubeError, TimeoutError) as error:
                log.warning("lease not renewed: %s", error)

    async def release(self) -> None:
        """Release the lease, so that another replica need not wait until it expires."""
        if not self.may_write():
            return
        self._proved = float("-inf")
        try:
            async with asyncio.timeout(_RELEASE_WITHIN):
                lease = await self._client.get(LEASES, self._name, self._namespace)
                if lease.spec.holder_identity == self.identity:
                    await self._put(lease, holder="", seconds=1)
        except (KubeError, TimeoutError) as error:
            log.info("lease not released: %s", error or "no answer in time")

    async def close(self) -> None:
        """Close the connections."""
        await self._client.http.close()

    async def _try(self) -> bool:
        """Acquire or renew the lease. Return False if another replica holds it.

        Raises:
            KubeError: The holder cannot be determined.
            TimeoutError: The API server does not answer in time.
        """
        started = self._clock()
        deadline = max(self._seconds / 3, 1.0)
        try:
            async with asyncio.timeout(deadline):
                held = await self._acquire(started)
        except ApiError:
            self._answered = self._clock()
            raise
        self._answered = self._clock()
        return held

    async def _acquire(self, started: float) -> bool:
        try:
            lease = await self._client.get(LEASES, self._name, self._namespace)
        except NotFound:
            try:
                await self._client.create(LEASES, self._body(None, self.identity, self._seconds), self._namespace)
            except AlreadyExists:
                return False
            self._proved = started
            return True
        if lease.spec.holder_identity not in ("", self.identity) and not self._is_expired(lease):
            return False
        try:
            await self._put(lease, self.identity, self._seconds)
        except Conflict:
            return False
        self._proved = started
        return True

    def _is_expired(self, lease: Lease) -> bool:
        seen = (lease.spec.holder_identity, lease.spec.renew_time or "")
        if seen != self._other:
            self._other, self._other_seen = seen, self._clock()
        return self._clock() - self._other_seen > max(lease.spec.lease_duration_seconds, 1)

    async def _put(self, lease: Lease, holder: str, seconds: float) -> None:
        await self._client.update(LEASES, self._name, self._body(lease, holder, seconds), self._namespace)

    def _body(self, lease: Lease | None, holder: str, seconds: float) -> dict[str, object]:
        now = micro_timestamp(time.time())
        transitions = 0
        metadata: dict[str, object] = {"name": self._name, "namespace": self._namespace}
        if lease is not None:
            metadata["resourceVersion"] = lease.metadata.resource_version
            transitions = lease.spec.lease_transitions + (lease.spec.holder_identity != holder)
        spec = {
            "holderIdentity": holder,
            "leaseDurationSeconds": max(1, round(seconds)),
            "renewTime": now,
            "leaseTransitions": transitions,
        }
        return {"metadata": metadata, "spec": spec}


def leader_of(options: Options, connection: Connection, name: str) -> Leader | None:
    """Return this process's candidate for the lease `name`; None without leader election."""
    if not options.leader_elect:
        return None
    identity = options.identity or f"{socket.gethostname()}_{os.getpid()}"
    client = Client(Http(connection, limit=2, agent=f"{NAME}-leader-election"))
    return Leader(client, identity, options.lease_namespace, options.lease_seconds, name=name)
