"""Configuration of all tests: asynchronous tests, signals, and the hypothesis profiles.

`--hypothesis-profile=NAME` selects a profile: `default`, `quick` (20 examples), `shrink` (also shrinks failures)
or `nightly` (10,000 examples).
"""

from __future__ import annotations

import functools
import inspect
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings
from pytest_bdd.utils import CONFIG_STACK

from tests.support.fake_server import run_until_complete

# A shell starts background jobs with SIGINT ignored, and the programs that tests interrupt would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: other processes share the two cores, and no test here measures time.
_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}

# The default profile does not shrink, because that takes minutes; `--hypothesis-profile=shrink` does.
_FIND = (Phase.explicit, Phase.reuse, Phase.generate)
settings.register_profile("default", max_examples=200, derandomize=True, phases=_FIND, **_COMMON)
settings.register_profile("quick", max_examples=20, derandomize=True, phases=_FIND, **_COMMON)
settings.register_profile("shrink", max_examples=200, derandomize=True, **_COMMON)
settings.register_profile("nightly", max_examples=10_000, **_COMMON)
settings.load_profile("default")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an `async def` test in an event loop of its own, within `@pytest.mark.deadline(seconds)` or 20 s."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(test).parameters}
    deadline = pyfuncitem.get_closest_marker("deadline")
    run_until_complete(functools.partial(test, **arguments), *(deadline.args if deadline else ()))
    return True


@pytest.fixture(autouse=True)
def _restore_config_stack() -> Iterator[None]:
    """Restore pytest-bdd's stack of configurations, which an inner pytest with invalid options changes."""
    before = list(CONFIG_STACK)
    yield
    CONFIG_STACK[:] = before
