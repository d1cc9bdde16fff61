"""``python -m tests.fault_injection``: what a fault breaks, what a scenario rests on. Exit status 1 where nothing does.

The one rule: this only prints and counts; :mod:`~tests.fault_injection.runs` runs.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.fault_injection import faulted, without_when
from tests.fault_injection.faults import FAULTS
from tests.fault_injection.runs import ROOT, Lab
from tests.fault_injection.specimens import read


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fault_injection", description=__doc__)
    parser.add_argument("which", nargs="*", choices=("faults", "whens", []), help="both unless one is named")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "test-the-tests")
    parser.add_argument("--jobs", type=int, default=3, help="clusters at a time (default: 3)")
    parser.add_argument("--timeout-scale", default="0.5", help="a wait that fails waits to its end (default: 0.5)")
    named = {"choices": sorted(FAULTS), "metavar": "FAULT"}
    parser.add_argument("--fault", action="append", help="only this one; may be given again", **named)
    parser.add_argument("--only", default="", help="only scenarios whose titles contain this")
    given = parser.parse_args()
    which = given.which or ["faults", "whens"]
    # what is in Chinese says the same as its English twin, sentence by sentence (tests/steps/test_zh.py)
    scenarios = [it for it in read(ROOT / "features") if given.only in it.title and not it.source.endswith(".zh")]
    lab = Lab(given.out.absolute(), given.jobs, given.timeout_scale)
    faultless = True
    if "faults" in which:
        faultless &= faulted.tell(faulted.run_all(lab, scenarios, given.fault), scenarios, sys.stdout)
    if "whens" in which:
        faultless &= without_when.tell(without_when.run_all(lab, scenarios), sys.stdout)
    return 0 if faultless else 1


if __name__ == "__main__":
    sys.exit(main())
