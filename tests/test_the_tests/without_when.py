"""Check that a scenario's claims depend on its actions: each positive `Then` must fail if its `When` is left out.

Only a failure of the claim itself counts. Any other failure proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TextIO

from tests.test_the_tests.runs import Lab, Result
from tests.test_the_tests.specimens import PAST, Specimen, Step


@dataclass(frozen=True)
class Block:
    """The positive claims that follow one `When` (or several in a row), and the scenario without this `When`."""

    scenario: Specimen
    thens: tuple[Step, ...]
    without: Specimen
    without_any: Specimen
    """The scenario without every `When`, not only the nearest."""


@dataclass(frozen=True)
class ClaimResult:
    """Whether one claim fails without its `When`, and a text that says why."""

    block: Block
    then: Step
    fails: bool
    text: str


def blocks(scenario: Specimen) -> Iterator[Block]:
    """Yield the blocks of a scenario, without the claims before its first `When`, which depend on its `Given`."""
    steps = scenario.steps
    starts = [n for n, it in enumerate(steps) if it.keyword == "When" and (not n or steps[n - 1].keyword != "When")]
    for first, end in zip(starts, [*starts[1:], len(steps)], strict=True):
        thens = tuple(it for it in steps[first:end] if it.keyword == "Then" and not it.stays)
        givens = [it for it in steps[:first] if it.keyword == "Given"]
        if thens:
            before = scenario.with_steps((*steps[:first], *thens))
            yield Block(scenario, thens, before, scenario.with_steps((*givens, *thens)))


def run_all(lab: Lab, scenarios: Sequence[Specimen]) -> list[ClaimResult]:
    """Return the verdict on every claim. A claim about the whole past may instead depend on an earlier `When`."""
    found = [block for scenario in scenarios for block in blocks(scenario)]
    results = lab.run("without-when", [it.without for it in found])
    judged = [(block, result) for block, result in zip(found, results, strict=True) if not result.skipped]
    verdicts = [it for block, result in judged for it in _verdicts(block, result)]
    retried = [
        it.block
        for it in verdicts
        if not it.fails and PAST.search(it.then.text) and it.block.without.steps != it.block.without_any.steps
    ]
    retried = list(dict.fromkeys(retried))
    requests = [it.without_any for it in retried]
    earlier = {
        (block, it.then)
        for block, result in zip(retried, lab.run("without-any", requests), strict=True)
        for it in _verdicts(block, result)
        if it.fails and PAST.search(it.then.text)
    }
    return [
        ClaimResult(it.block, it.then, True, "depends on an earlier When")
        if not it.fails and (it.block, it.then) in earlier
        else it
        for it in verdicts
    ]


def _verdicts(block: Block, result: Result) -> Iterator[ClaimResult]:
    """Yield the verdicts of a block. A scenario that used no cluster has no record; its failure names the claim."""
    first = len(result.specimen.steps) - len(block.thens)
    early = next((n for n in result.broken if n < first), None)
    for number, then in enumerate(block.thens, first):
        unrecorded = not result.broken and then.text in result.failure
        if early is not None:
            yield ClaimResult(block, then, False, f"was not reached: {result.sentence}")
        elif number in result.broken or unrecorded:
            yield ClaimResult(block, then, True, "fails without its When")
        else:
            why = "passes without its When" if result.passed or result.broken else f"was not reached: {result.failure}"
            yield ClaimResult(block, then, False, why)


def report(verdicts: Sequence[ClaimResult], out: TextIO) -> bool:
    """Print the table; return True if every claim fails."""
    print("\nClaims, and how many fail without their When", file=out)
    print(f"{'scenario':44} {'claims':>6} {'fail':>5} {'of these by an earlier When':>28}", file=out)
    for source in dict.fromkeys(it.block.scenario.source for it in verdicts):
        mine = [it for it in verdicts if it.block.scenario.source == source]
        earlier = sum("earlier" in it.text for it in mine)
        print(f"{source:44} {len(mine):6} {sum(it.fails for it in mine):5} {earlier or '':>28}", file=out)
    bad = [it for it in verdicts if not it.fails]
    print(f"\nClaims that depend on no When: {len(bad) or 'none'}", file=out)
    for it in bad:
        print(f"  {it.block.scenario.title}: {it.then.text}: {it.text[:300]}", file=out)
    return not bad
