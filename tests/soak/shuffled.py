"""pytest plugin: shuffle the scenarios by the seed `SOAK_SEED`, because no scenario may depend on an earlier one."""

from __future__ import annotations

import os
import random

import pytest


def pytest_report_header() -> str:
    return f"scenarios in the order of seed {os.environ['SOAK_SEED']}"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    random.Random(int(os.environ["SOAK_SEED"])).shuffle(items)
