"""Print the end of a run: each cluster's boot time, the paths of the reports, and reports that could not be written.

Works across xdist.
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
    """Collects one row for each worker and prints them; registered as a plugin of its own."""

    def __init__(self, config: pytest.Config) -> None:
        config.stash[_ROWS] = []
        config.stash[_UNWRITTEN] = []
        self._config = config

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:  # noqa: ARG002 - xdist's signature
        """Take over the rows of a worker of xdist that has ended."""
        output = getattr(node, "workeroutput", {})
        self._config.stash[_ROWS] += output.get("schedspec", [])
        self._config.stash[_UNWRITTEN] += output.get("schedspec-unwritten", [])

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self) -> Generator[None, object, object]:
        """On a worker, send the rows to the controller. A JUnit file that cannot be written changes no verdict."""
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput["schedspec"] = self._config.stash[_ROWS]
            self._config.workeroutput["schedspec-unwritten"] = self._config.stash[_UNWRITTEN]
        with reporting(self._config):
            return (yield)
        return None

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the rows."""
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
    """Report errors of writing reports once, at the end of the run; they change no verdict."""
    try:
        yield
    except OSError as problem:
        config.stash[_UNWRITTEN].append(str(problem))


def note(config: pytest.Config, session: LiveSession) -> None:
    """Keep the summary of a session's cluster."""
    facts = session.cluster.facts()
    prefix = f"{worker(config)}: " if worker(config) else ""
    first = "no pod ran" if session.first_running is None else f"first pod Running after {session.first_running:.1f} s"
    if session.cluster.kind == "simulated":  # it neither boots nor writes logs
        config.stash[_ROWS].append(f"{prefix}simulated, in virtual time: {first}")
        return
    seconds = session.handle.boot_seconds
    booted = f"booted in {seconds:.1f} s" if seconds else "was running already"
    made_of = f" ({', '.join(facts.made_of)})" if facts.made_of else ""
    config.stash[_ROWS].append(
        f"{prefix}{session.cluster.kind} {facts.server_version}{made_of}: {booted}, {first}; logs in {session.folder}"
    )


def worker(config: pytest.Config) -> str:
    """Return the id of this xdist worker; empty without xdist."""
    return str(getattr(config, "workerinput", {}).get("workerid", ""))


def runs_nothing(config: pytest.Config) -> bool:
    """Whether pytest only shows what it would run: --collect-only, --setup-plan or --setup-only."""
    return any(getattr(config.option, name, False) for name in ("collectonly", "setuponly", "setupplan"))


def run_of(config: pytest.Config) -> str:
    """Return an id that the workers of one run share, and no other run has."""
    return str(getattr(config, "workerinput", {}).get("testrunuid", "")) or str(os.getpid())


def progress_writer(config: pytest.Config) -> Callable[[str], None]:
    """Return the writer of progress lines; silent on workers, whose output is lost."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    capture = config.pluginmanager.get_plugin("capturemanager")
    progress = config.pluginmanager.get_plugin("schedspec-progress")
    if reporter is None or capture is None or worker(config):
        return lambda _: None
    lines = progress.lines if progress is not None else None
    writer = Lines(reporter, live=False) if lines is None else lines

    def show(text: str) -> None:
        with capture.global_and_fixture_disabled():
            reporter.ensure_newline()
            writer.show(f"schedspec: {text}", text.partition(": ")[0])

    return show
