"""Run pytest in this process on a simulated cluster whose scheduler has a fault. A process can be used only once."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from pathlib import Path

import pytest

import schedspec.plugin.run_plugin
import schedspec.virtual.cluster  # noqa: F401 - for the same reason
from tests.test_the_tests.faults import FAULTS

_FAST = ("--assert=plain", "-p", "no:hypothesispytest", "-p", "no:xdist", "-p", "no:playwright")
"""Options that skip imports that the scenarios do not use, which would take most of a short run."""


def of(fault: str) -> Callable[[list[str], Path], int]:
    """Return a function that runs pytest with a fault in the scheduler; without a fault if `fault` is empty."""
    return functools.partial(_start, fault)


def _start(fault: str, arguments: list[str], log: Path) -> int:
    if fault:
        FAULTS[fault].inject()
    with log.open("w", encoding="utf-8") as out, contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        return int(pytest.main([*_FAST, *arguments]))
