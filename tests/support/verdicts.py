"""Compare the verdicts of two runs of the same features: `python -m tests.support.verdicts ONE TWO`.

ONE and TWO are the `results.json` of each run. Scenarios that one of the runs did not judge (skipped, or a required
capability is missing) are not compared.

Exit status 1: a verdict differs, or too few scenarios were judged by both runs; 2: a file could not be read.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from schedspec import results
from schedspec.api.errors import HarnessError

JUDGED = ("passed", "failed", "known", "by design")
ENOUGH = 0.9
"""The share of the scenarios judged by ONE that TWO has to judge as well."""


def verdicts(file: Path) -> dict[str, str]:
    """Return the verdict of each scenario that a run has judged, by node id. Raises HarnessError."""
    return {it.node_id: it.verdict for it in results.read(file).results if it.verdict in JUDGED}


def differences(one: Mapping[str, str], two: Mapping[str, str]) -> list[str]:
    """Return a line for each scenario whose verdicts differ."""
    both = one.keys() & two.keys()
    return [f"{it}: {one[it]} and {two[it]}" for it in sorted(both) if one[it] != two[it]]


def compare(first: Path, second: Path) -> tuple[list[str], int]:
    """Return the lines to print, and the exit status. Raises HarnessError."""
    one, two = verdicts(first), verdicts(second)
    found, both = differences(one, two), len(one.keys() & two.keys())
    counts = f"{both} scenarios were judged by both of {first} ({len(one)}) and {second} ({len(two)})"
    lines = [*found, f"{counts}: {len(found)} differ"]
    if too_few := both == 0 or both < len(one) * ENOUGH:
        lines.append(f"too few: at least 1 and {ENOUGH:.0%} of the first are needed")
        lines.append("  do next: run both again, on the same features")
    return lines, int(bool(found) or too_few)


def main(arguments: Sequence[str]) -> int:
    """Print the differences. Return the exit status."""
    parser = argparse.ArgumentParser(
        "python -m tests.support.verdicts", description="Compare the verdicts of two runs."
    )
    for name in ("one", "two"):
        parser.add_argument(name, type=Path, metavar=name.upper(), help="results.json of a run")
    given = parser.parse_args(arguments)
    try:
        lines, status = compare(given.one, given.two)
    except HarnessError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write("\n".join([*lines, ""]))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
