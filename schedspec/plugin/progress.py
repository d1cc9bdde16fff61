"""Show on a terminal what a run is doing.

The terminal shows which cluster boots or which image is built. With `-v` it shows the current sentence and the
condition for which the sentence waits; after Ctrl-C, the condition that was not met yet.

`--pause-on-failure` pauses here too: the scenario has failed, and its objects still exist.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from .. import distribution
from ..api import clock
from ..scenario.run import SCENARIO_RUN, ScenarioRun, SentenceRun
from ..terminal import Lines

NAME = "schedspec-progress"
_SUBJECT = "step"
_TICK_SECONDS = 0.2
_SHOW_AFTER = 0.5
"""Seconds after which a sentence shows its duration and the condition for which it waits."""


class Progress:
    """Shows the sentences of a run on a terminal; silent without one."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._running: ScenarioRun | None = None
        self._terminal: Lines | None = None
        self._lines: Lines | None = None
        """The writer of sentences: the terminal, with `-v`."""
        self._stop = threading.Event()

    @property
    def lines(self) -> Lines | None:
        """The writer of live lines; None without a terminal: in a log, on a worker of xdist."""
        return self._terminal

    def end_line(self) -> None:
        """End the live line, so that pytest continues at the beginning of a line."""
        if self._terminal is not None:
            self._terminal.close()

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Duplicate the terminal's descriptor: pytest replaces standard output by a file while a test runs."""
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
        """Start a line for the sentence."""
        if SCENARIO_RUN not in request.node.stash:
            return
        first = self._running is None
        self._running = request.node.stash[SCENARIO_RUN]
        if self._lines is not None:
            if first:
                self._own_line()
            self._lines.close()
            self._lines.show(_step(self._running.sentences[-1]), _SUBJECT)

    @pytest.hookimpl(trylast=True)
    def pytest_bdd_after_step(self) -> None:
        """Show the sentence as passed, with its duration."""
        self._ended()

    @pytest.hookimpl(trylast=True)
    def pytest_bdd_step_error(self) -> None:
        """Show the sentence as failed."""
        self._ended()

    @pytest.hookimpl(trylast=True)
    def pytest_bdd_after_scenario(self) -> None:
        """Forget the scenario if its last sentence ended; after Ctrl-C keep it, for the message of the interrupt."""
        if self._running is not None and self._running.sentences and self._running.sentences[-1].ended is not None:
            self._running = None

    def _ended(self) -> None:
        if self._running is not None and self._lines is not None:
            self._lines.show(
                _step(self._running.sentences[-1]), _SUBJECT
            )  # messages of a boot may have replaced the line

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:  # noqa: ARG002
        """Print the sentence at which the run was interrupted, and the condition for which it waited."""
        running = self._running
        if running is None or not running.sentences:
            return
        sentence = running.sentences[-1]
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.ensure_newline()
            reporter.write_line(
                f"interrupted at {running.where}: {sentence}, after {clock.monotonic() - sentence.began:.1f} s"
            )
            for line in waits_for(running).splitlines():
                reporter.write_line(f"  {line}")

    def _own_line(self) -> None:
        """End the reporter's current line, which shows the test's name."""
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        capture: Any = self._config.pluginmanager.get_plugin("capturemanager")
        with capture.global_and_fixture_disabled():
            reporter.ensure_newline()

    def _tick(self) -> None:
        while not self._stop.wait(_TICK_SECONDS):
            running, lines = self._running, self._lines
            if running is None or lines is None or not running.sentences:
                continue
            sentence = running.sentences[-1]
            if sentence.ended is None and clock.monotonic() - sentence.began > _SHOW_AFTER:
                seen = waits_for(running).rpartition("seen: ")[2].partition("\n")[0]
                lines.update(_step(sentence) + (f" · {seen}" if seen else ""), _SUBJECT)


def of(config: pytest.Config) -> Progress:
    """Return the `Progress` of a run."""
    found = config.pluginmanager.get_plugin(NAME)
    assert isinstance(found, Progress)
    return found


def _step(sentence: SentenceRun) -> str:
    took = (sentence.ended or clock.monotonic()) - sentence.began
    mark = "✗" if sentence.verdict == "failed" else "✓" if sentence.verdict == "passed" else "…"
    return f"  {mark} {sentence}" + (f"  {took:.1f} s" if took >= _SHOW_AFTER else "")


def waits_for(running: ScenarioRun) -> str:
    """Return the condition for which the current sentence waits, as a failure shows it; empty if it does not wait."""
    unmet = running.world.expect.waiting if running.world is not None else None
    return str(distribution.load("schedspec.scheduler.model.printable").printable(str(unmet or "")))


def pause(running: ScenarioRun, config: pytest.Config, read: Callable[[], str] = input) -> None:
    """Keep the cluster unchanged until the user presses Enter. Ctrl-C ends the run, which cleans up."""
    capture = config.pluginmanager.get_plugin("capturemanager")
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if running.world is None or running.session is None or capture is None or reporter is None:
        return
    capture.suspend(in_=True)
    try:
        reporter.ensure_newline()
        reporter.write_line(f"{running.where}: failed; the cluster is left unchanged")
        reporter.write_line(f"  export KUBECONFIG={running.session.handle.kubeconfig}")
        reporter.write_line(f"  kubectl --namespace {running.world.namespace} get pods,podgroups,jobs.batch.volcano.sh")
        if hint := running.session.names.hint(version.ref for version in running.world.history.since(0)):
            reporter.write_line(f"  {hint}")
        reporter.write_line("press Enter to continue with the next scenario, Ctrl-C to end the run")
        with suppress(EOFError):
            read()
    finally:
        capture.resume()
