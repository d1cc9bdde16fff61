"""`python -m tests.test_the_tests`: list which scenarios detect each fault, and whether claims depend on their `When`.

`explored` lists which faults exploration finds. The exit status is 1 if one of the lists misses its goal.
`tests.test_the_tests.runs` runs the scenarios.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.test_the_tests import explored, faulted, without_when
from tests.test_the_tests.faults import FAULTS
from tests.test_the_tests.runs import ROOT, Lab
from tests.test_the_tests.specimens import read


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.test_the_tests", description=__doc__)
    parser.add_argument("which", nargs="*", choices=("faults", "whens", "explored", []), help="default: faults, whens")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "test-the-tests")
    parser.add_argument("--jobs", type=int, default=2, help="number of clusters at a time (default: 2)")
    parser.add_argument(
        "--timeout-scale", default="0.5", help="factor of timeouts, which failing scenarios wait out (default: 0.5)"
    )
    named = {"choices": sorted(FAULTS), "metavar": "FAULT"}
    parser.add_argument("--fault", action="append", help="only this fault; may be repeated", **named)
    parser.add_argument("--simulated", action="store_true", help="leave out faults that need an embedded cluster")
    parser.add_argument("--only", default="", help="only scenarios whose titles contain this text")
    parser.add_argument("--minutes", type=float, default=10, help="CPU time to explore a fault (default: 10)")
    given = parser.parse_args()
    which = given.which or ["faults", "whens"]
    # a Chinese feature equals its English twin, sentence by sentence (tests/steps/test_zh.py)
    scenarios = [it for it in read(ROOT / "features") if given.only in it.title and not it.source.endswith(".zh")]
    names = [it for it in given.fault or FAULTS if not (given.simulated and FAULTS[it].of_process)]
    lab = Lab(given.out.absolute(), given.jobs, given.timeout_scale)
    faultless = True
    if "faults" in which:
        faultless &= faulted.report(faulted.run_all(lab, scenarios, names), scenarios, sys.stdout)
    if "whens" in which:
        faultless &= without_when.report(without_when.run_all(lab, scenarios), sys.stdout)
    if "explored" in which:
        faultless &= explored.report(explored.run_all(names, given.jobs, given.minutes), sys.stdout)
    return 0 if faultless else 1


if __name__ == "__main__":
    sys.exit(main())
