"""Known differences: scenarios that a scheduler fails, each with what happens instead.

They are in a YAML file beside the adapter, as a list:

    - feature: lifecycle/reclaim_conditions.feature
      scenario: A queue <relation> what it deserves loses <victims> of its pods
      example: {relation: at}
      instead: the queue loses two pods although it holds exactly what it deserves
      signatures:
        - sentence: '"mine" stays pending'
          seen: {evictions: 2}
      upstream: https://github.com/volcano-sh/volcano/issues/4947

A signature describes an observed failure: the sentence, what it expects, and what the cluster showed, as amounts. A
scenario with such an entry is expected to fail in that way and in no other. If the scenario passes, the run fails and
requests the removal of the entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Final

import msgspec
import yaml

from ..api.errors import HarnessError
from ..results import BY_DESIGN

USUAL: Final = "usual"
Amounts = dict[str, int | str]
"""`evictions`, `running NAME` and `evicted NAME` of workloads, and `queue NAME`, which is a state."""


class Signature(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One way in which the scenario fails."""

    sentence: str
    """The sentence that fails, as the feature has it with its example filled in (`*`: any text), or `monitor NAME`."""
    expected: Amounts = {}
    """Amounts that the sentence expects; it may expect more."""
    seen: Amounts = {}
    """Amounts that the cluster showed; it may have shown more."""

    def matches(self, sentence: str, expected: Amounts, seen: Amounts) -> bool:
        same = self.expected.items() <= expected.items() and self.seen.items() <= seen.items()
        return same and fnmatchcase(sentence, self.sentence)


class KnownDifference(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One scenario, or one row of its examples."""

    feature: str
    """End of the path of the feature: folder and name."""
    scenario: str
    """Title of the scenario in the feature."""
    example: dict[str, str] = {}
    """The relevant columns of the row of examples; empty for every row."""
    instead: str
    """The actual behaviour, for users."""
    signatures: Annotated[list[Signature], msgspec.Meta(min_length=1)]
    """The failures that were seen; a failure that matches none of them is not known."""
    upstream: str = ""
    """The issue of the other project, or its document that promises other behaviour."""
    design: str = ""
    """The document of the other project by which its design does not aim at what the scenario asks for."""
    sometimes: bool = False
    """True if the difference occurs in some runs only; a run without it passes."""
    configurations: tuple[str, ...] = (USUAL,)
    """Configurations with the difference (`--scheduler NAME+CONFIGURATION`); `usual` is that of NAME alone."""
    versions: list[str] = []
    """Kubernetes versions with the difference (`1.36`); empty for every version.

    If a run does not know its version beforehand (Kind, an existing cluster), the difference may or may not happen.
    """

    @property
    def reason(self) -> str:
        """Return the text for the lists of skipped and failed scenarios."""
        what, source = (BY_DESIGN, self.design) if self.design else ("known difference", self.upstream)
        return f"{what}: {self.instead}" + (f" ({source})" if source else "")

    def matches(self, sentence: str, expected: Amounts, seen: Amounts) -> bool:
        return any(signature.matches(sentence, expected, seen) for signature in self.signatures)

    def is_strict(self, version: str) -> bool:
        """Whether a run without the difference fails."""
        return not self.sometimes and not (self.versions and not version)

    def covers(self, path: Path, scenario: str, row: Mapping[str, str], version: str, configuration: str = "") -> bool:
        """Whether the entry is about this scenario with this version of Kubernetes and this configuration.

        `version`: minor version of Kubernetes; empty if unknown. `configuration`: the scheduler's configuration; empty
        for the usual one.
        """
        return (
            path.as_posix().endswith(f"/{self.feature}")
            and scenario == self.scenario
            and self.example.items() <= row.items()
            and (not self.versions or version in ("", *self.versions))
            and (configuration or USUAL) in self.configurations
        )


def read(path: Path) -> list[KnownDifference]:
    """Return the entries of a file. Raises HarnessError: the file is invalid; the text names the file and the field."""
    try:
        found = msgspec.convert(yaml.safe_load(path.read_text("utf-8")) or [], list[KnownDifference])
    except (msgspec.ValidationError, yaml.YAMLError) as problem:
        raise HarnessError(f"{path}: {problem}") from None
    for entry in found:
        if entry.design and entry.upstream:
            raise HarnessError(f"{path}: {entry.scenario}: name `upstream` for a mistake or `design`, not both")
    return found
