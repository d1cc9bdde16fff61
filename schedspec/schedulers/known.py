"""Known differences: what a scheduler does otherwise than a scenario says, each with what it does instead.

They stand in a YAML file beside the adapter, as a list:

    - feature: lifecycle/reclaim_conditions.feature
      scenario: A queue that is <relation> what it deserves
      example: {relation: at}
      instead: the queue loses two pods although it holds exactly what it deserves
      upstream: https://github.com/volcano-sh/volcano/issues/4947

A scenario with such an entry is expected to fail. Where it passes, the run fails and says so: the entry is to go.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
import yaml

from ..api.errors import HarnessError


class KnownDifference(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One scenario, or one row of its examples."""

    feature: str
    """The file, as it ends: folder and name."""
    scenario: str
    """Its name as it stands in the feature."""
    example: dict[str, str] = {}
    """The row of the examples, as far as it matters; empty for every row."""
    instead: str
    """What happens instead, for people."""
    upstream: str = ""
    """Where it is discussed."""
    sometimes: bool = False
    """It happens in some runs only: a run in which it does not is a pass."""
    versions: list[str] = []
    """The Kubernetes versions that it is known of (`1.36`); empty for every version. Where a run does not know its
    version beforehand (Kind, an existing cluster) it may happen or not.
    """

    @property
    def reason(self) -> str:
        """For the skip and failure lists of a run."""
        return f"known difference: {self.instead}" + (f" ({self.upstream})" if self.upstream else "")

    def is_strict(self, version: str) -> bool:
        """Whether a run in which it does not happen fails."""
        return not self.sometimes and not (self.versions and not version)

    def covers(self, path: Path, scenario: str, row: Mapping[str, str], version: str) -> bool:
        """Whether it is about this scenario on this version of Kubernetes; empty where that is not known."""
        return (
            path.as_posix().endswith(f"/{self.feature}")
            and scenario == self.scenario
            and self.example.items() <= row.items()
            and (not self.versions or version in ("", *self.versions))
        )


def read(path: Path) -> list[KnownDifference]:
    """The entries of a file. Raises HarnessError, which names the file and the field."""
    try:
        return msgspec.convert(yaml.safe_load(path.read_text("utf-8")) or [], list[KnownDifference])
    except (msgspec.ValidationError, yaml.YAMLError) as problem:
        raise HarnessError(f"{path}: {problem}") from None
