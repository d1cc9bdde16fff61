"""What the process answers over HTTP.

The one rule: pages only read; they are asked from the server's thread, and never wait for the event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .metrics import Metrics
from .policy_file import PolicyFile
from .progress import Progress
from .server import METRICS, Answer, Page, Query, data, text
from .state_feed import StateFeed


class Endpoints:
    """The pages of one process. ``unlisted`` says what the controllers still wait for."""

    def __init__(self, feed: StateFeed, policy: PolicyFile, metrics: Metrics, progress: Progress) -> None:
        self.unlisted: Callable[[], list[str]] = list
        self._feed = feed
        self._policy = policy
        self._metrics = metrics
        self._progress = progress

    def by_path(self) -> Mapping[str, Page]:
        return {
            "/healthz": self.healthz,
            "/readyz": self.readyz,
            "/metrics": self.metrics,
            "/policy": self.policy,
        }

    def healthz(self, _: Query) -> Answer:
        """200 while the process gets on; then what does not."""
        trouble = self._progress.trouble
        return text(503, trouble) if trouble else text(200, "ok")

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
