"""Provide the cluster of the fault tests to tests of the whole process."""

from __future__ import annotations

import pytest

from tests.support.live.fixtures import cluster, components, target

__all__ = ["cluster", "components", "target"]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "embedded: boots an embedded cluster")
