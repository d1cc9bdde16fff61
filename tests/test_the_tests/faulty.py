"""Run a scheduler with one fault: `python -m tests.test_the_tests.faulty FAULT run …`, as `python -m scheduler run …`.

The product has no switch for faults; a fault replaces a function of the product in this process.
"""

from __future__ import annotations

import sys

from schedspec.scheduler.__main__ import main
from tests.test_the_tests.faults import FAULTS

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in FAULTS:
        sys.exit(f"usage: python -m tests.test_the_tests.faulty FAULT run …\n  faults: {', '.join(FAULTS)}")
    FAULTS[sys.argv[1]].inject()
    sys.exit(main(sys.argv[2:]))
