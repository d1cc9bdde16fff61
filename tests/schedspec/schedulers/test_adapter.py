"""The API of gangs limits the capabilities of a scheduler."""

from __future__ import annotations

import pytest

from schedspec.api.capabilities import Capability
from schedspec.schedulers import ADAPTERS
from schedspec.schedulers.adapter import KUBERNETES, VOLCANO


@pytest.mark.parametrize(
    ("scheduler", "api", "lacking"),
    [
        ("schedspec", VOLCANO, set()),
        ("schedspec", KUBERNETES, {Capability.PREFERRED_TOPOLOGY}),
        ("volcano", VOLCANO, {Capability.DISRUPTION_MODE}),
    ],
)
def test_a_gang_api_may_lack_a_capability(scheduler: str, api: str, lacking: set[Capability]) -> None:
    adapter = ADAPTERS[scheduler]()
    adapter.gang_api = api
    both = {Capability.DISRUPTION_MODE, Capability.PREFERRED_TOPOLOGY}
    assert {it for it in both if adapter.missing(it)} == lacking
