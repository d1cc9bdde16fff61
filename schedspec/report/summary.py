"""What a run says at its end: how long each cluster took, where the reports are, and which could not be written.
Crosses xdist.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from ..terminal import Lines

if TYPE_CHECKING:
    from ..scenario.session import LiveSession

_ROWS: pytest.StashKey[list[str]] = pytest.StashKey()
_UNWRITTEN: pytest.StashKey[list[str]] = pytest.StashKey()


class Summary:
    """Collects one row a worker and prints them; registered as a plugin of its own."""

    def __init__(self, config: pytest.Config) -> None:
        config.stash[_ROWS] = []
        config.stash[_UNWRITTEN] = []
        self._config = config

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:  # noqa: ARG002 - xdist's signature
        """A worker of xdist has ended: take its rows over."""
        output = getattr(node, "workeroutput", {})
        self._config.stash[_ROWS] += output.get("schedspec", [])
        self._config.stash[_UNWRITTEN] += output.get("schedspec-unwritten", [])

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self) -> Generator[None, object, object]:
        """On a worker: hand the rows to the controller. A JUnit file that cannot be written changes no verdict."""
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput["schedspec"] = self._config.stash[_ROWS]
            self._config.workeroutput["schedspec-unwritten"] = self._config.stash[_UNWRITTEN]
        with reporting(self._config):
            return (yield)
        return None

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print them."""
        unwritten = self._config.stash[_UNWRITTEN]
        if unwritten:
            terminalreporter.section("reports")
            more = f" (and {len(unwritten) - 1} more)" if unwritten[1:] else ""
            terminalreporter.write_line(f"not written: {unwritten[0]}{more}; the verdicts stand", yellow=True)
        rows = self._config.stash[_ROWS]
        if rows:
            terminalreporter.section("clusters")
            for row in rows:
                terminalreporter.write_line(row)


@contextlib.contextmanager
def reporting(config: pytest.Config) -> Iterator[None]:
    """What is done in here writes reports: that it cannot is said once, at the end, and changes no verdict."""
    try:
        yield
    except OSError as problem:
        config.stash[_UNWRITTEN].append(str(problem))


def note(config: pytest.Config, session: LiveSession) -> None:
    """Keep what is to be said about a session's cluster."""
    facts = session.cluster.facts()
    who = f"{worker(config)}: " if worker(config) else ""
    first = "no pod ran" if session.first_running is None else f"first pod Running after {session.first_running:.1f} s"
    seconds = session.handle.boot_seconds
    booted = f"booted in {seconds:.1f} s" if seconds else "was running already"
    made_of = f" ({', '.join(facts.made_of)})" if facts.made_of else ""
    config.stash[_ROWS].append(
        f"{who}{session.cluster.kind} {facts.server_version}{made_of}: {booted}, {first}; logs in {session.folder}"
    )


def worker(config: pytest.Config) -> str:
    """The id of this xdist worker, or empty."""
    return str(getattr(config, "workerinput", {}).get("workerid", ""))


def run_of(config: pytest.Config) -> str:
    """An id that the workers of one run have in common, and with no other run."""
    return str(getattr(config, "workerinput", {}).get("testrunuid", "")) or str(os.getpid())


def teller(config: pytest.Config) -> Callable[[str], None]:
    """Says what is going on while somebody waits; silent on workers, whose output goes nowhere."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    capture = config.pluginmanager.get_plugin("capturemanager")
    progress = config.pluginmanager.get_plugin("schedspec-progress")
    if reporter is None or capture is None or worker(config):
        return lambda _: None
    lines = progress.lines if progress is not None else None
    told = Lines(reporter, live=False) if lines is None else lines

    def tell(text: str) -> None:
        with capture.global_and_fixture_disabled():
            reporter.ensure_newline()
            told.tell(f"schedspec: {text}", text.partition(": ")[0])

    return tell
