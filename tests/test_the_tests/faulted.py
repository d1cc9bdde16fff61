"""Find which scenarios and monitors detect which fault, and which sentences no fault breaks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TextIO

from schedspec.monitors import MONITORS
from tests.test_the_tests.faults import FAULTS
from tests.test_the_tests.faults.fault import TAG
from tests.test_the_tests.runs import Lab, Result
from tests.test_the_tests.specimens import Specimen

ResultsByFault = Mapping[str, Sequence[Result]]
SHOWN = 3
ENDED = "nothing is scheduled any more"
"""Part of a scenario's failure text if its scheduler has ended."""


def run_all(lab: Lab, scenarios: Sequence[Specimen], names: Iterable[str] | None = None) -> dict[str, list[Result]]:
    """Run every fault, or the named faults, with the scenarios that may detect it; return the results by fault."""
    requests = [
        (name, replace(it, tags=(*it.tags, f"@{TAG}{name}")))
        for name in names or FAULTS
        for it in scenarios
        if FAULTS[name].may_be_detected_by(it)
    ]
    seen: dict[str, list[Result]] = {}
    for (name, _), result in zip(requests, lab.run("faults", [it for _, it in requests]), strict=True):
        seen.setdefault(name, []).append(result)
    return seen


def report(seen: ResultsByFault, scenarios: Sequence[Specimen], out: TextIO) -> bool:
    """Print the table and all problems; return True if there are none. If all faults ran, each sentence must break."""
    skipped = {it.specimen.title for results in seen.values() for it in results if it.skipped}
    scenarios = [it for it in scenarios if it.title not in skipped]
    seen = {name: [it for it in results if not it.skipped] for name, results in seen.items()}
    print("Faults, and what detects them", file=out)
    print(f"{'fault':24} {'failed':>8}  detected by", file=out)
    problems: list[str] = []
    for name, results in seen.items():
        detected = [it for it in results if not it.passed and (it.broken or it.monitors or FAULTS[name].ends)]
        print(f"{name:24} {len(detected):3} of {len(results):2}  {_detectors(detected)}", file=out)
        for line in _examples(detected):
            print(f"{'':36}{line}", file=out)
        if not detected:
            problems.append(f"{name}: nothing detects that the scheduler {FAULTS[name].does}")
        problems += [
            f"{name}: {it.specimen.title} failed, but no sentence and no monitor reports it; see its log"
            for it in results
            if not it.passed and it not in detected
        ]
        problems += [
            f"{name}: {it.specimen.title} detected only that the scheduler has ended; see its log"
            for it in detected
            if ENDED in it.failure and not FAULTS[name].ends
        ]
        problems += [
            f"{name}: {result.specimen.title} passed, although the scheduler {FAULTS[name].does}"
            for result in results
            if result.passed and FAULTS[name].must_fail(result.specimen)
        ]
    unbroken = list(_unbroken(seen, scenarios))
    print(f"\nForbidding sentences that no fault breaks: {len(unbroken) or 'none'}", file=out)
    for line in unbroken:
        print(f"  {line}", file=out)
    reporting = {name for results in seen.values() for it in results for name in it.monitors}
    print(f"\nMonitors that report no fault: {', '.join(sorted(MONITORS.keys() - reporting)) or 'none'}", file=out)
    print(f"\nUndetected faults, and scenarios with a wrong result: {len(problems) or 'none'}", file=out)
    for line in problems:
        print(f"  {line}", file=out)
    acting = {name for name, fault in FAULTS.items() if fault.acts}
    return not problems and not (unbroken and acting <= seen.keys())


def _detectors(detected: Sequence[Result]) -> str:
    monitors = sorted({name for result in detected for name in result.monitors})
    sentences = sum(len(result.broken) for result in detected)
    words = [f"{sentences} sentences"] if sentences else []
    words += [f"monitors {', '.join(monitors)}"] if monitors else []
    return "; ".join(words) or ("the scheduler's end" if detected else "NOTHING")


def _examples(detected: Sequence[Result]) -> list[str]:
    lines = [f"{it.specimen.title}: {it.sentence or ', '.join(it.monitors) or 'not begun'}" for it in detected]
    more = [f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return [*lines[:SHOWN], *more]


def _unbroken(seen: ResultsByFault, scenarios: Sequence[Specimen]) -> Iterable[str]:
    acting = [it for name, results in seen.items() if FAULTS[name].acts for it in results]
    broken = {(it.specimen.title, position) for it in acting for position in it.broken}
    for specimen in scenarios:
        for position, step in enumerate(specimen.steps):
            if step.forbids and (specimen.title, position) not in broken:
                yield f"{specimen.title}: {step.text}"
