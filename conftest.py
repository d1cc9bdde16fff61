"""What every run in this tree gets: the harness, and all steps."""

from pkgutil import iter_modules

import steps

pytest_plugins = ["harness.plugin", *(f"steps.{module.name}" for module in iter_modules(steps.__path__))]
