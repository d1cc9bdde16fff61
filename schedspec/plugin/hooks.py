"""Hooks with which other plugins extend a run. Each hook receives the running scenario."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..scenario.run import ScenarioRun


class HookSpecs:
    """Implement these hooks in a plugin or a conftest. pytest accepts only names that begin with `pytest_`."""

    @pytest.hookspec
    def pytest_schedspec_begins(self, running: ScenarioRun) -> None:
        """Run code before the first sentence that touches the world; the world is open and empty."""

    @pytest.hookspec
    def pytest_schedspec_judge(self, running: ScenarioRun) -> Sequence[str] | None:
        """Judge a scenario after its last sentence, or after the one that failed; its objects still exist.

        Returns:
            One text for each finding. A finding fails a scenario that has passed so far; for a failed scenario it is
            reported beside the failure.
        """

    @pytest.hookspec
    def pytest_schedspec_ended(self, running: ScenarioRun) -> None:
        """Record a scenario: its verdict is final and the cluster is clean again."""
