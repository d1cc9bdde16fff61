"""The HTTP endpoints of the scheduling process.

Endpoints only read. They run in the server's thread and never wait for the event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .metrics import Metrics
from .policy_file import PolicyFile
from .progress import Progress
from .server import METRICS, Answer, Endpoint, Query, data, text
from .state_feed import StateFeed


class Endpoints:
    """The endpoints of one process. `unlisted` returns why the controllers are not ready, one line per reason."""

    def __init__(self, feed: StateFeed, policy: PolicyFile, metrics: Metrics, progress: Progress) -> None:
        self.unlisted: Callable[[], list[str]] = list
        self._feed = feed
        self._policy = policy
        self._metrics = metrics
        self._progress = progress

    def by_path(self) -> Mapping[str, Endpoint]:
        return {
            "/healthz": self.healthz,
            "/readyz": self.readyz,
            "/metrics": self.metrics,
            "/policy": self.policy,
        }

    def healthz(self, _: Query) -> Answer:
        """Return 200 while the process makes progress, else 503 with the reason."""
        trouble = self._progress.trouble
        return text(503, trouble) if trouble else text(200, "ok")

    def readyz(self, _: Query) -> Answer:
        """Return 200 if every watch has listed and none is silent for too long, else 503 with the reasons."""
        unready = [reflector.unready for reflector in self._feed.reflectors]
        waiting = [reason for reason in unready if reason] + self.unlisted()
        return text(503, "\n".join(waiting)) if waiting else text(200, "ok")

    def policy(self, _: Query) -> Answer:
        current = self._policy.current
        fields = {"path": current.path, "sha256": current.sha256, "error": current.error}
        return data(fields | {"refused_sha256": current.refused_sha256})

    def metrics(self, query: Query) -> Answer:
        """Return all metrics, or those named by `name[]`, as Prometheus clients request them."""
        return 200, METRICS, self._metrics.render(query.get("name[]", ()))
