"""Explore the scheduler: random small cases, the promises that hold in each of them, and what they reach.

1. `generate` draws a case from a seed, or changes one that reached something new; `policies` draws its policy.
2. `promises` names what a case breaks; the caller adds the monitors of scenarios.
3. `reach` says which actions, plugins, switches and reasons a case has come to.
"""

from .generate import Draw, generate
from .promises import PROMISES, Promise, Worlds, break_promises
from .reach import SPACE, reach_of

__all__ = ["PROMISES", "SPACE", "Draw", "Promise", "Worlds", "break_promises", "generate", "reach_of"]
