"""Explore the scheduler: draw random small cases, check the promises that hold in every case, and measure coverage.

1. `generate` draws a case from a seed, or changes a case that reached something new; `policies` draws its policy,
   `contention` jobs that compete, and `hardware` cards and racks. `vocabulary` leaves out what a scheduler does not
   support.
2. `promises` lists the promises that a case breaks, and names the module that judges each; the caller adds the monitors
   of scenarios.
3. `reach` lists the actions, plugins, switches and reasons that a case reached.
4. `judge` judges a simulated case by promises and monitors, `rounds` runs many seeds, and `found` reduces and writes
   findings. With other schedulers, cases run on a cluster (`on_cluster`), limited to what the adapter and a profile
   support (`profiles`).
"""

from .generate import Draw, generate
from .owed import owed_jobs
from .policies import is_refused
from .promises import PROMISES, PromiseFinding, Worlds, alive_jobs, broken_promises, error_of
from .reach import SPACE, reach_of
from .vocabulary import EVERYTHING, Vocabulary
