"""Run the scheduler as a separate process, and query it through its HTTP pages.

Queries disturb the scheduler as little as possible: one kept connection, a few requests a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from tests.support.live.api_objects import ROOT


class Scheduler:
    """A scheduler process on a cluster, with a policy."""

    def __init__(
        self, kubeconfig: Path, policy: str, *more: str, controllers: str = "none", only_controllers: bool = False
    ) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="schedspec-bench-")
        folder = Path(self._folder.name)
        self.policy_file = folder / "policy.yaml"
        self.policy_file.write_text(policy)
        self.log = folder / "log"
        what = ["run", "--policy", str(self.policy_file), "--controllers", controllers]
        what = ["controllers"] if only_controllers else what
        command = [sys.executable, "-m", "scheduler", *what, "--kubeconfig", str(kubeconfig), *more]
        self._stderr = self.log.open("wb")
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=self._stderr, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().removeprefix("listening on ").strip()
        self._pages = http.client.HTTPConnection(self.address, timeout=60)
        if not self.address:
            output = self.log.read_text()
            self._close()
            raise RuntimeError(f"the scheduler did not start: {output}")
        self._seen = psutil.Process(self.process.pid)

    def change_policy(self, text: str) -> None:
        """Replace the policy file atomically: the scheduler would read a half-written file and refuse it."""
        new = self.policy_file.with_suffix(".new")
        new.write_text(text)
        new.replace(self.policy_file)

    def cpu_seconds(self) -> float:
        times = self._seen.cpu_times()
        return times.user + times.system

    def memory_mb(self) -> float:
        return self._seen.memory_info().rss / 1e6

    def connections(self) -> int:
        return len(self._seen.net_connections("tcp"))

    def memory_blocks(self) -> float:
        """Return the number of blocks in use in Python's allocator."""
        return self._gauge("schedspec_memory_blocks")

    def heap_mb(self) -> float:
        """Return the megabytes in use in the C library's heap."""
        return self._gauge("schedspec_memory_heap_bytes") / 1e6

    def _gauge(self, name: str) -> float:
        """Return the value of a metric without labels."""
        return float(self.page(f"/metrics?name[]={name}").split()[-1])

    def peak_mb(self) -> float:
        """Return the peak of the process's resident memory, in megabytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        (peak,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
        return int(peak.split()[1]) * 1024 / 1e6

    def wait_ready(self) -> None:
        until = time.monotonic() + 120
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                self.page("/readyz")
                return
            time.sleep(0.05)
        raise RuntimeError(f"the scheduler is not ready: {self.log.read_text()}")

    def page(self, path: str) -> str:
        """Return an HTTP page of the scheduler. The connection is kept, so that queries cost the scheduler little.

        Raises:
            OSError: The scheduler does not answer, or its status is not 200.
        """
        try:
            return self._request(path)
        except (ConnectionError, http.client.HTTPException):  # an idle connection was closed
            self._pages.close()
            return self._request(path)

    def _request(self, path: str) -> str:
        try:
            self._pages.request("GET", path)
            answer = self._pages.getresponse()
            body = answer.read().decode()
        except OSError:
            self._pages.close()
            raise
        if answer.status != 200:
            raise OSError(f"{path}: {answer.status} {body}")
        return body

    def bound(self) -> int:
        """Return the number of binds that the API server has accepted."""
        name = "volcano_schedule_attempts_total"
        for line in self.page(f"/metrics?name[]={name}").splitlines():
            if line.startswith(f'{name}{{result="scheduled"}}'):
                return int(float(line.split()[-1]))
        return 0

    def leads(self) -> bool:
        """Whether this replica schedules."""
        return "schedspec_leader 1.0" in self.page("/metrics?name[]=schedspec_leader")

    def kill(self) -> None:
        """Send SIGKILL and wait for the end of the process."""
        self.process.kill()
        self._close()

    def stop(self) -> int:
        """Send SIGTERM, and SIGKILL if the process still runs after 120 s; return the exit status."""
        self.process.terminate()
        try:
            self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()
        return self._close()

    def _close(self) -> int:
        status = self.process.wait()
        self._pages.close()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self._stderr.close()
        self._folder.cleanup()
        return status


@contextlib.contextmanager
def scheduling(kubeconfig: Path, policy: str, *more: str, controllers: str = "none") -> Iterator[Scheduler]:
    scheduler = Scheduler(kubeconfig, policy, *more, controllers=controllers)
    try:
        yield scheduler
    finally:
        scheduler.stop()


async def until_bound(scheduler: Scheduler, count: int) -> tuple[float, int, float]:
    """Wait until `count` pods are bound. Return time and number of the first binds seen, and the time of the last."""
    first, before = 0.0, 0
    until = time.monotonic() + 180
    while time.monotonic() < until:
        bound = scheduler.bound()
        if bound and not first:
            first, before = time.monotonic(), bound
        if bound >= count:
            return first, before, time.monotonic()
        await asyncio.sleep(0.25 if bound < 0.8 * count else 0.05)  # only the time of the last bind must be exact
    raise RuntimeError(f"only {scheduler.bound()} of {count} pods are bound after 180 s:\n{scheduler.log.read_text()}")


async def until_quiescent(scheduler: Scheduler) -> None:
    """Wait until the scheduler uses less than 3 % of a core, for at most a minute."""
    for _ in range(60):
        before = scheduler.cpu_seconds()
        await asyncio.sleep(1.0)
        if scheduler.cpu_seconds() - before < 0.03:
            return
