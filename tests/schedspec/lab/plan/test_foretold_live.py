"""The immediate effects that a plan predicts occur when the change is made on the live cluster of the dump."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.live.team_cluster import GANG_ABOVE_CAPACITY, HARMLESS, SMALLER_SHARE, team

pytestmark = [pytest.mark.embedded, pytest.mark.nightly]


@pytest.mark.deadline(1800)
async def test_predicted_effects_occur_on_a_live_cluster(tmp_path: Path) -> None:
    async with team(seed=0) as made:
        foretold = {}
        for kind in (HARMLESS, SMALLER_SHARE, GANG_ABOVE_CAPACITY):
            found = await made.compare(kind, tmp_path / kind)
            assert found.is_none, f"{kind}: {found}"
            foretold[kind] = found.foretold
    assert foretold[HARMLESS] == 0
    assert foretold[SMALLER_SHARE] > 0
