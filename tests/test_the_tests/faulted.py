"""Find which scenario or monitor catches which fault, and which sentences no fault has broken."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TextIO

from schedspec.monitors import MONITORS
from tests.test_the_tests.faults import FAULTS
from tests.test_the_tests.faults.fault import TAG
from tests.test_the_tests.runs import Lab, Result
from tests.test_the_tests.specimens import Specimen

ObjectSeen = Mapping[str, Sequence[Result]]
SHOWN = 3
ENDED = "nothing is scheduled any more"
"""Part of the failure of a scenario whose scheduler has ended."""


def run_all(lab: Lab, scenarios: Sequence[Specimen], names: Iterable[str] | None = None) -> dict[str, list[Result]]:
    """Run every fault, or the named ones, against the scenarios that may see it; return the results by fault."""
    requests = [
        (name, replace(it, tags=(*it.tags, f"@{TAG}{name}")))
        for name in names or FAULTS
        for it in scenarios
        if FAULTS[name].may_be_seen_by(it)
    ]
    seen: dict[str, list[Result]] = {}
    for (name, _), result in zip(requests, lab.run("faults", [it for _, it in requests]), strict=True):
        seen.setdefault(name, []).append(result)
    return seen


def report(seen: ObjectSeen, scenarios: Sequence[Specimen], out: TextIO) -> bool:
    """Print the table and what is missing; return True if nothing is. If all faults ran, each sentence must break."""
    skipped = {it.specimen.title for results in seen.values() for it in results if it.skipped}
    scenarios = [it for it in scenarios if it.title not in skipped]
    seen = {name: [it for it in results if not it.skipped] for name, results in seen.items()}
    print("Faults, and who caught them", file=out)
    print(f"{'fault':24} {'failed':>8}  caught by", file=out)
    missed: list[str] = []
    for name, results in seen.items():
        caught = [it for it in results if not it.passed and (it.broken or it.monitors or FAULTS[name].ends)]
        print(f"{name:24} {len(caught):3} of {len(results):2}  {_catchers(caught)}", file=out)
        for line in _examples(caught):
            print(f"{'':36}{line}", file=out)
        if not caught:
            missed.append(f"{name}: nobody saw that it {FAULTS[name].does}")
        missed += [
            f"{name}: {it.specimen.title} failed, and neither a sentence nor a monitor says it; see its log"
            for it in results
            if not it.passed and it not in caught
        ]
        missed += [
            f"{name}: {it.specimen.title} saw nothing but that the scheduler has ended; see its log"
            for it in caught
            if ENDED in it.failure and not FAULTS[name].ends
        ]
        missed += [
            f"{name}: {result.specimen.title} passed, though the scheduler {FAULTS[name].does}"
            for result in results
            if result.passed and FAULTS[name].must_fail(result.specimen)
        ]
    unbroken = list(_unbroken(seen, scenarios))
    print(f"\nSentences that forbid, and that no fault has broken: {len(unbroken) or 'none'}", file=out)
    for line in unbroken:
        print(f"  {line}", file=out)
    spoke = {name for results in seen.values() for it in results for name in it.monitors}
    print(f"\nMonitors that no fault has made speak: {', '.join(sorted(MONITORS.keys() - spoke)) or 'none'}", file=out)
    print(f"\nFaults that somebody should have seen: {len(missed) or 'none'}", file=out)
    for line in missed:
        print(f"  {line}", file=out)
    acting = {name for name, fault in FAULTS.items() if fault.acts}
    return not missed and not (unbroken and acting <= seen.keys())


def _catchers(caught: Sequence[Result]) -> str:
    monitors = sorted({name for result in caught for name in result.monitors})
    sentences = sum(len(result.broken) for result in caught)
    words = [f"{sentences} sentences"] if sentences else []
    words += [f"monitors {', '.join(monitors)}"] if monitors else []
    return "; ".join(words) or ("the scheduler's end" if caught else "NOBODY")


def _examples(caught: Sequence[Result]) -> list[str]:
    lines = [f"{it.specimen.title}: {it.sentence or ', '.join(it.monitors) or 'not begun'}" for it in caught]
    more = [f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return [*lines[:SHOWN], *more]


def _unbroken(seen: ObjectSeen, scenarios: Sequence[Specimen]) -> Iterable[str]:
    acting = [it for name, results in seen.items() if FAULTS[name].acts for it in results]
    broken = {(it.specimen.title, position) for it in acting for position in it.broken}
    for specimen in scenarios:
        for position, step in enumerate(specimen.steps):
            if step.forbids and (specimen.title, position) not in broken:
                yield f"{specimen.title}: {step.text}"
