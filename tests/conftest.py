"""hypothesis profiles: ``default`` for every run, ``nightly`` (``--hypothesis-profile=nightly``) for the long one."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# No deadline: two cores are shared by whatever else runs, and no test here is about time.
_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}

settings.register_profile("default", max_examples=200, derandomize=True, **_COMMON)
settings.register_profile("nightly", max_examples=10_000, **_COMMON)
settings.load_profile("default")
