"""Explore the scheduler: draw random small cases, check the promises that hold in every case, and measure coverage.

1. `generate` draws a case from a seed, or changes one that reached something new; `policies` draws its policy.
2. `promises` lists the promises that a case breaks; the caller adds the monitors of scenarios.
3. `reach` lists the actions, plugins, switches and reasons that a case reached.
"""

from .generate import Draw, generate
from .promises import PROMISES, Promise, Worlds, break_promises
from .reach import SPACE, reach_of

__all__ = ["PROMISES", "SPACE", "Draw", "Promise", "Worlds", "break_promises", "generate", "reach_of"]
