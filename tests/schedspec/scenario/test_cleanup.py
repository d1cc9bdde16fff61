"""The clean-up of a scenario allows the API server enough time to delete many objects."""

from __future__ import annotations

from typing import Any

import pytest

from schedspec.api import timeouts
from schedspec.api.client import Api
from schedspec.api.kinds import Kind
from schedspec.scenario.cleanup import delete_namespace


def test_the_deletion_of_all_pods_of_a_scenario_may_take_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the timeout of other requests (10 s), a scenario with 1,280 pods passed and then failed in its clean-up."""
    waits: dict[str, float] = {}
    api = Api.__new__(Api)

    def call(method: str, path: str, *, timeout: float, **_: Any) -> None:
        waits[f"{method} {path}"] = timeout

    monkeypatch.setattr(api, "call", call)
    delete_namespace(api, "spec-1", [Kind.POD])
    assert waits["DELETE /api/v1/namespaces/spec-1/pods"] == timeouts.COLLECTION
    assert waits["DELETE /api/v1/namespaces/spec-1"] < timeouts.COLLECTION
