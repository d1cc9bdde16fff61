"""A scheduler lacks scenarios that the API in which gangs are written cannot express."""

from __future__ import annotations

import pytest

from schedspec.api.capabilities import Capability
from schedspec.schedulers import ADAPTERS
from schedspec.schedulers.adapter import KUBERNETES, VOLCANO


@pytest.mark.parametrize(
    ("api", "lacking"), [(VOLCANO, Capability.DISRUPTION_MODE), (KUBERNETES, Capability.PREFERRED_TOPOLOGY)]
)
def test_an_api_of_gangs_cannot_express_everything(api: str, lacking: Capability) -> None:
    adapter = ADAPTERS["schedspec"]()
    adapter.gang_api = api
    both = {Capability.DISRUPTION_MODE, Capability.PREFERRED_TOPOLOGY}
    assert {it for it in both if adapter.missing(it)} == {lacking}
