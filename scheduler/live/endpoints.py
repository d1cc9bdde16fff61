"""What the process answers over HTTP.

The one rule: pages only read; they are asked from the server's thread, and never wait for the event loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from .metrics import Metrics
from .policy_file import PolicyFile
from .server import METRICS, Answer, Page, Query, data, text
from .state_feed import StateFeed

_HANGS_AFTER = 30.0
"""Seconds without a turn of the event loop after which ``/healthz`` says so."""


class Endpoints:
    """The pages of one process. ``unlisted`` says what the controllers still wait for."""

    def __init__(self, feed: StateFeed, policy: PolicyFile, metrics: Metrics) -> None:
        self.unlisted: Callable[[], list[str]] = list
        self._feed = feed
        self._policy = policy
        self._metrics = metrics
        self._beat = time.monotonic()

    def beat(self) -> None:
        """The event loop turns."""
        self._beat = time.monotonic()

    def by_path(self) -> Mapping[str, Page]:
        return {
            "/healthz": self.healthz,
            "/readyz": self.readyz,
            "/metrics": self.metrics,
            "/policy": self.policy,
        }

    def healthz(self, _: Query) -> Answer:
        silent = time.monotonic() - self._beat
        return text(200, "ok") if silent < _HANGS_AFTER else text(503, f"the event loop hangs for {silent:.0f} s")

    def readyz(self, _: Query) -> Answer:
        """200 once every watch has listed; until then, what is missing."""
        reflectors = [reflector for reflector in self._feed.reflectors if not reflector.synced.is_set()]
        waiting = [r.trouble or f"{r.resource.id} not yet listed" for r in reflectors] + self.unlisted()
        return text(503, "\n".join(waiting)) if waiting else text(200, "ok")

    def policy(self, _: Query) -> Answer:
        current = self._policy.current
        said = {"path": current.path, "sha256": current.sha256, "error": current.error}
        return data(said | {"refused_sha256": current.refused_sha256})

    def metrics(self, query: Query) -> Answer:
        """All metrics, or those named by ``name[]``, as Prometheus clients ask for them."""
        return 200, METRICS, self._metrics.render(query.get("name[]", ()))
