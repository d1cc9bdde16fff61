"""A pytest plugin: what a collection found wrong, and how many scenarios it found, as a JSON file for `check`."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

VARIABLE = "SCHEDSPEC_COLLECTED"
"""Names the file."""


class Collected(msgspec.Struct):
    """What pytest's collection said."""

    scenarios: int = 0
    failures: list[str] = []


_found = Collected()


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """A file that could not be collected says why."""
    if report.failed:
        _found.failures.append(str(report.longrepr))


def pytest_collection_finish(session: pytest.Session) -> None:
    """All others are fine."""
    _found.scenarios = sum(item.path.suffix == ".feature" for item in session.items)


def pytest_sessionfinish() -> None:
    """The end of the collection, however it went."""
    Path(os.environ[VARIABLE]).write_bytes(msgspec.json.encode(_found))
