"""The world of a scenario knows which policy was in force at which time."""

from __future__ import annotations

import math
from typing import Any
from unittest.mock import Mock

import pytest

from schedspec.api.errors import PolicyRefusedError
from schedspec.observe.history import History
from schedspec.scenario.world import PolicySpan, World


def test_a_policy_stays_in_force_where_the_scheduler_refuses_the_next_one() -> None:
    scheduler, anything = Mock(), Mock()
    parts: list[Any] = [anything, History("ns"), anything, anything, scheduler]
    world = World(*parts, ownership=anything)
    world.use_policy_text("first", "first")
    scheduler.use_policy.side_effect = PolicyRefusedError("it is invalid")
    with pytest.raises(PolicyRefusedError):
        world.use_policy_text("second", "second")
    before, now = world.policies
    assert before.until <= now.since
    assert now == PolicySpan("first", now.since, math.inf)
