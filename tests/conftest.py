"""hypothesis profiles: ``default`` for every run, ``quick`` for a first look, ``nightly`` for the long one.

``--hypothesis-profile=NAME`` chooses another than ``default``.
"""

from __future__ import annotations

import signal

from hypothesis import HealthCheck, Phase, settings

# A shell that runs this in the background has it ignore Ctrl-C, and with it the programs that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: two cores are shared by whatever else runs, and no test here is about time.
_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}

# The default finds and does not shrink: that takes minutes. `--hypothesis-profile=shrink` makes what was found small.
_FIND = (Phase.explicit, Phase.reuse, Phase.generate)
settings.register_profile("default", max_examples=200, derandomize=True, phases=_FIND, **_COMMON)
settings.register_profile("quick", max_examples=20, derandomize=True, phases=_FIND, **_COMMON)
settings.register_profile("shrink", max_examples=200, derandomize=True, **_COMMON)
settings.register_profile("nightly", max_examples=10_000, **_COMMON)
settings.load_profile("default")
