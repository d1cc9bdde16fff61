"""What a person sees while a run works: on a terminal what is booted or built, with -v the sentence that is said and
what it waits for, and after Ctrl-C what was waited for.

`--pause-on-failure` stops here too: the scenario has failed, and its objects are still there.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from ..scenario.run import SCENARIO_RUN, ScenarioRun, SentenceRun
from ..terminal import Lines

NAME = "schedspec-progress"
_SUBJECT = "step"
_EVERY = 0.2
_PATIENCE = 0.5
"""A step that is done sooner needs no word on what it waits for."""


class Progress:
    """The sentences of a run, live, where somebody is there to see them; silent otherwise."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._running: ScenarioRun | None = None
        self._terminal: Lines | None = None
        self._lines: Lines | None = None
        """Where sentences go: the terminal, with -v."""
        self._stop = threading.Event()

    @property
    def lines(self) -> Lines | None:
        """Where live lines go; None where nobody sees them: in a log, on a worker of xdist."""
        return self._terminal

    def end_line(self) -> None:
        """What took a while is done: pytest goes on at the beginning of a line."""
        if self._terminal is not None:
            self._terminal.close()

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Keep the terminal: pytest puts a file in its place while a test runs."""
        reporter = session.config.pluginmanager.get_plugin("terminalreporter")
        capture = session.config.pluginmanager.get_plugin("capturemanager")
        if reporter is None or capture is None or not reporter.isatty or hasattr(session.config, "workerinput"):
            return
        with capture.global_and_fixture_disabled():
            self._terminal = Lines(os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace"), live=True)
        if session.config.get_verbosity() < 1:
            return
        self._lines = self._terminal
        threading.Thread(target=self._tick, name="schedspec-progress", daemon=True).start()

    def pytest_unconfigure(self) -> None:
        """End the ticker."""
        self._stop.set()

    @pytest.hookimpl(trylast=True)
    def pytest_bdd_before_step(self, request: pytest.FixtureRequest) -> None:
        """A sentence begins: it gets a line of its own."""
        first = self._running is None
        self._running = request.node.stash[SCENARIO_RUN]
        if self._lines is not None:
            if first:
                self._own_line()
            self._lines.close()
            self._lines.tell(_step(self._running.sentences[-1]), _SUBJECT)

    @pytest.hookimpl(trylast=True)
    def pytest_bdd_after_step(self) -> None:
        """It was true: its line says so, and how long it took."""
        self._ended()

    @pytest.hookimpl(trylast=True)
    def pytest_bdd_step_error(self) -> None:
        """It was not."""
        self._ended()

    @pytest.hookimpl(trylast=True)
    def pytest_bdd_after_scenario(self) -> None:
        """All was said; after Ctrl-C not: then what was waited for is still to be told."""
        if self._running is not None and self._running.sentences[-1].ended is not None:
            self._running = None

    def _ended(self) -> None:
        if self._running is not None and self._lines is not None:
            self._lines.tell(_step(self._running.sentences[-1]), _SUBJECT)  # a boot may have stood in between

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:  # noqa: ARG002
        """Say what was waited for, where the run was stopped."""
        running = self._running
        if running is None or not running.sentences:
            return
        said = running.sentences[-1]
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.ensure_newline()
            reporter.write_line(f"interrupted at {running.where}: {said}, after {time.monotonic() - said.began:.1f} s")
            for line in waits_for(running).splitlines():
                reporter.write_line(f"  {line}")

    def _own_line(self) -> None:
        """The test's name stands on the current line of the reporter: let it end."""
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        capture: Any = self._config.pluginmanager.get_plugin("capturemanager")
        with capture.global_and_fixture_disabled():
            reporter.ensure_newline()

    def _tick(self) -> None:
        while not self._stop.wait(_EVERY):
            running, lines = self._running, self._lines
            if running is None or lines is None or not running.sentences:
                continue
            said = running.sentences[-1]
            if said.ended is None and time.monotonic() - said.began > _PATIENCE:
                seen = waits_for(running).rpartition("seen: ")[2].partition("\n")[0]
                lines.update(_step(said) + (f" · {seen}" if seen else ""), _SUBJECT)


def of(config: pytest.Config) -> Progress:
    """That of a run."""
    found = config.pluginmanager.get_plugin(NAME)
    assert isinstance(found, Progress)
    return found


def _step(said: SentenceRun) -> str:
    took = (said.ended or time.monotonic()) - said.began
    mark = "✗" if said.verdict == "failed" else "✓" if said.verdict == "passed" else "…"
    return f"  {mark} {said}" + (f"  {took:.1f} s" if took >= _PATIENCE else "")


def waits_for(running: ScenarioRun) -> str:
    """What the current sentence waits for, as a failure would say it; empty if it does not wait."""
    unmet = running.world.expect.waiting if running.world is not None else None
    return str(unmet or "")


def pause(running: ScenarioRun, config: pytest.Config, read: Callable[[], str] = input) -> None:
    """Leave everything as it is until somebody presses Enter; Ctrl-C ends the run, which cleans up."""
    capture = config.pluginmanager.get_plugin("capturemanager")
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if running.world is None or running.session is None or capture is None or reporter is None:
        return
    capture.suspend(in_=True)
    try:
        reporter.ensure_newline()
        reporter.write_line(f"{running.where}: failed; the cluster stays as it is")
        reporter.write_line(f"  export KUBECONFIG={running.session.handle.kubeconfig}")
        reporter.write_line(f"  kubectl --namespace {running.world.namespace} get pods,podgroups,jobs.batch.volcano.sh")
        reporter.write_line("press Enter to go on to the next scenario, Ctrl-C to end the run")
        with suppress(EOFError):
            read()
    finally:
        capture.resume()
