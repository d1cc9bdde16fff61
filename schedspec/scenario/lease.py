"""Allow one run at a time on a cluster that outlives runs, by a Lease.

A run fails if the lease was renewed recently. It watches an expired lease before it takes the lease over, because the
clocks of two machines differ.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import secrets
import socket
import threading
import time
from datetime import UTC, datetime
from typing import Final

from ..api.client import Api, Object
from ..api.errors import ClusterInUseError, ForeignObjectError, HarnessError, RejectedError
from ..clusters.protocol import SCENARIO

NAMESPACE, NAME = "kube-system", "schedspec-run"
_ALL: Final = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
PATH: Final = f"{_ALL}/{NAME}"


class RunLease:
    """One run's lease on a cluster, from `acquire` to `release`. A thread renews it.

    Args:
        seconds: How long the lease is valid after each renewal.
    """

    def __init__(self, api: Api, context: str, *, seconds: int = 30) -> None:
        self._api, self._context, self._seconds = api, context, seconds
        host = f"{getpass.getuser()}@{socket.gethostname()}"
        self.holder = f"{host}, process {os.getpid()} ({secrets.token_hex(2)})"
        self._mine: Object | None = None
        self._lost = ""
        self._renewed = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renew_until_stopped, name="lease", daemon=True)

    def acquire(self) -> None:
        """Acquire the lease and renew it until `release`.

        Raises:
            ClusterInUseError: another run holds the lease.
            ForeignObjectError: the lease belongs to another program.
            RejectedError: the API server refused a request.
        """
        self._mine = self._create() or self._take_over() or self._create()
        if self._mine is None:
            raise ClusterInUseError(
                f"several runs tried to acquire the cluster at the same time\n  {self._where()}\n  do next: run again"
            )
        self._renewed = time.monotonic()
        self._thread.start()

    def check(self) -> None:
        """Check that this run still holds the lease.

        Raises:
            ClusterInUseError: the lease was lost.
        """
        if self._lost:
            raise ClusterInUseError(f"this run has lost the cluster: {self._lost}\n  {self._where()}")

    def release(self) -> None:
        """Release the lease. Does nothing on a second call or for a lost lease."""
        self._stop.set()
        mine, self._mine = self._mine, None
        if mine is None:
            return
        self._thread.join()
        if not self._lost:
            with contextlib.suppress(HarnessError):  # the lease expires by itself
                self._api.delete(PATH, uid=mine["metadata"]["uid"])

    def _create(self) -> Object | None:
        """Create the lease; return None if it exists already."""
        meta = {"name": NAME, "namespace": NAMESPACE, "labels": {SCENARIO: "run"}}
        body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": self._spec(None)}
        try:
            return self._api.call("POST", _ALL, body=body)
        except RejectedError as problem:
            if problem.status == 409:
                return None
            raise

    def _take_over(self) -> Object | None:
        """Take over an expired lease; return None if it was deleted meanwhile."""
        answer = self._api.raw("GET", PATH)
        if answer.status == 404:
            return None
        found: Object = answer.json()
        if SCENARIO not in (found["metadata"].get("labels") or {}):
            raise ForeignObjectError(
                f"the lease {NAMESPACE}/{NAME} does not belong to a run of schedspec, but every run needs this name\n"
                f"  {self._where()}\n  do next: find its owner: kubectl -n {NAMESPACE} get lease {NAME} -o yaml"
            )
        left = found["spec"]["leaseDurationSeconds"] - (time.time() - _seconds(found["spec"]["renewTime"]))
        if left > 0:
            raise self._in_use(found["spec"], left)
        until = time.monotonic() + _pause(found["spec"]["leaseDurationSeconds"]) * 2
        while time.monotonic() < until:
            time.sleep(0.1)
            if (now := self._api.call("GET", PATH)["spec"])["renewTime"] != found["spec"]["renewTime"]:
                raise self._in_use(now, now["leaseDurationSeconds"])
        try:
            return self._put(found, self._spec(None))
        except RejectedError as problem:
            if problem.status != 409:
                raise
        spec = self._api.call("GET", PATH)["spec"]  # another run was faster
        raise self._in_use(spec, spec["leaseDurationSeconds"])

    def _renew_until_stopped(self) -> None:
        while not self._stop.wait(_pause(self._seconds)):
            if self._mine is None:
                return
            try:
                self._mine = self._renew(self._mine)
                self._renewed = time.monotonic()
            except HarnessError as problem:  # the API server may be unreachable for a while
                self._lost = str(problem) if time.monotonic() - self._renewed > self._seconds else self._lost
            if self._lost:
                return

    def _renew(self, mine: Object) -> Object:
        try:
            return self._put(mine, self._spec(mine["spec"]))
        except RejectedError as problem:
            if problem.status not in (404, 409):
                raise
        now = self._api.call("GET", PATH)
        if now["spec"]["holderIdentity"] != self.holder:
            self._lost = f"{now['spec']['holderIdentity']} has held it since {now['spec']['acquireTime']}"
            return mine
        return self._put(now, self._spec(now["spec"]))

    def _put(self, found: Object, spec: Object) -> Object:
        return self._api.call("PUT", PATH, body={**found, "spec": spec})

    def _spec(self, before: Object | None) -> Object:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return {
            "holderIdentity": self.holder,
            "leaseDurationSeconds": self._seconds,
            "acquireTime": before["acquireTime"] if before else now,
            "renewTime": now,
        }

    def _in_use(self, spec: Object, left: float) -> ClusterInUseError:
        return ClusterInUseError(
            f"another run uses the cluster: {spec['holderIdentity']}, since {spec['acquireTime']}; last renewed "
            f"at {spec['renewTime']}\n  {self._where()}\n"
            f"  do next: wait for its end; if it was killed, run again in {max(1, round(left))} s"
        )

    def _where(self) -> str:
        return f"where: lease {NAMESPACE}/{NAME}, context {self._context}"


def _pause(seconds: float) -> float:
    """Return the seconds between two renewals of a lease that lasts `seconds`."""
    return seconds / 6


def _seconds(time_of_api: str) -> float:
    return datetime.fromisoformat(time_of_api).timestamp()
