"""Provide the cluster of the fault tests."""

from __future__ import annotations

import pytest

from tests.support.live.fixtures import cluster, components, target

__all__ = ["cluster", "components", "target"]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "embedded: boots an embedded cluster")
    config.addinivalue_line("markers", "faults: long tests of faults on an embedded cluster")
