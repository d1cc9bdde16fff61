"""Read scenarios as data: each with the sentences of its background, the values of its example, and its tags.

They are written as plain Gherkin again, so that a changed scenario is collected and run like any other.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gherkin.parser import Parser
from gherkin.pickles.compiler import Compiler

FEATURES = Path(__file__).parents[2] / "features"
KEYWORDS = {"Context": "Given", "Action": "When", "Outcome": "Then"}

STAYS = re.compile(
    r"stays? (pending|Pending|Inqueue|Running)|nothing is evicted|keeps running|has no pods|exactly 0 pods"
    r"|as a whole or not at all|no pod is on|all of this happens|^at most|holds at most|never holds less"
)
"""Sentences that claim that something does not happen, so they are true before anything happens."""
EXACT = re.compile(r"^exactly|is evicted before")
"""Sentences that claim how much happens, or in which order."""
PAST = re.compile(r"are evicted|is evicted|in this order|goes through|has minMember")
"""Sentences about everything since the scenario began: once true, they remain true."""


@dataclass(frozen=True)
class Step:
    """One sentence: its keyword (Given, When, Then), its text, and the lines of its table or doc string."""

    keyword: str
    text: str
    argument: tuple[str, ...] = ()

    @property
    def stays(self) -> bool:
        return bool(STAYS.search(self.text))

    @property
    def forbids(self) -> bool:
        """Whether the sentence claims that something never happens, or happens exactly so: only a fault breaks it."""
        return self.keyword == "Then" and (self.stays or bool(EXACT.search(self.text)))


@dataclass(frozen=True)
class Specimen:
    """One scenario: its source (`lifecycle/states`), name, tags and sentences."""

    source: str
    name: str
    tags: tuple[str, ...]
    steps: tuple[Step, ...]

    @property
    def title(self) -> str:
        return f"{self.source}: {self.name}"

    def with_steps(self, steps: Iterable[Step]) -> Specimen:
        return replace(self, steps=tuple(steps))


def read(folder: Path) -> list[Specimen]:
    """Return all scenarios of a folder's features, in the order of their files."""
    found: list[Specimen] = []
    for path in sorted(folder.rglob("*.feature")):
        source = str(path.relative_to(folder).with_suffix(""))
        document: Any = {**Parser().parse(path.read_text("utf-8")), "uri": source}
        for pickle in Compiler().compile(document):
            tags = tuple(tag["name"] for tag in pickle["tags"])
            found.append(Specimen(source, pickle["name"], tags, tuple(map(_step, pickle["steps"]))))
    return found


def _step(pickled: Any) -> Step:
    argument = pickled.get("argument") or {}
    rows = [[cell["value"] for cell in row["cells"]] for row in argument.get("dataTable", {}).get("rows", ())]
    lines = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    if "docString" in argument:
        lines = ['"""', *argument["docString"]["content"].splitlines(), '"""']
    return Step(KEYWORDS[pickled["type"]], pickled["text"], tuple(lines))


def write(specimens: Sequence[Specimen], path: Path) -> None:
    """Write a feature file with these scenarios, each named by its position in the sequence."""
    lines = ["Feature: Scenarios that are run to find which faults they detect"]
    for number, specimen in enumerate(specimens):
        lines += ["", f"  {' '.join(specimen.tags)}" if specimen.tags else "", f"  Scenario: {number:03d}"]
        for step in specimen.steps:
            lines += [f"    {step.keyword} {step.text}", *(f"      {line}" for line in step.argument)]
    path.parent.mkdir(parents=True, exist_ok=True)
    for folder in {FEATURES / it.source for it in specimens}:  # the files that sentences name are beside them
        for file in folder.parent.glob("*.*"):
            if file.suffix != ".feature":
                shutil.copy(file, path.parent)
    path.write_text("\n".join(lines) + "\n", "utf-8")
