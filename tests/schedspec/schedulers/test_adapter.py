"""The API of gangs limits the capabilities of a scheduler."""

from __future__ import annotations

import pytest

from schedspec.api.capabilities import Capability
from schedspec.schedulers import ADAPTERS
from schedspec.schedulers.adapter import KUBERNETES, VOLCANO


@pytest.mark.parametrize(
    ("api", "lacking"), [(VOLCANO, Capability.DISRUPTION_MODE), (KUBERNETES, Capability.PREFERRED_TOPOLOGY)]
)
def test_each_gang_api_lacks_one_capability(api: str, lacking: Capability) -> None:
    adapter = ADAPTERS["schedspec"]()
    adapter.gang_api = api
    both = {Capability.DISRUPTION_MODE, Capability.PREFERRED_TOPOLOGY}
    assert {it for it in both if adapter.missing(it)} == {lacking}
