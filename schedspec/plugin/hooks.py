"""What others may add to a run: pluggy hooks, each with the running scenario as its argument."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..scenario.run import ScenarioRun


class HookSpecs:
    """Implement these in a plugin or a conftest; pytest takes only names that begin with `pytest_`."""

    @pytest.hookspec
    def pytest_schedspec_begins(self, running: ScenarioRun) -> None:
        """The world is empty and open; no sentence was said yet that touches it."""

    @pytest.hookspec
    def pytest_schedspec_judge(self, running: ScenarioRun) -> Sequence[str] | None:
        """All sentences were said, or one has failed; the objects are still there. What is wrong, one text a finding.

        A finding fails a scenario that has passed so far, and is told beside the failure of one that has not.
        """

    @pytest.hookspec
    def pytest_schedspec_ended(self, running: ScenarioRun) -> None:
        """The verdict is known; the cluster is clean again. The place to write a record of it."""
