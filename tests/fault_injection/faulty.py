"""A scheduler with one fault: ``python -m tests.fault_injection.faulty FAULT run …``, as ``python -m scheduler run …``.

The one rule: the product has no switch for any of this; a fault takes the place of a function of it, here.
"""

from __future__ import annotations

import sys

from scheduler.__main__ import main
from tests.fault_injection.faults import FAULTS

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in FAULTS:
        sys.exit(f"usage: python -m tests.fault_injection.faulty FAULT run …\n  faults: {', '.join(FAULTS)}")
    FAULTS[sys.argv[1]].inject()
    sys.exit(main(sys.argv[2:]))
