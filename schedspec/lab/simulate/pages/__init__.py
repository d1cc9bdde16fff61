"""Render a simulation's result as a page: what queues held, why jobs waited, which queue lost pods to which.

1. `world` reads a result file into distributions, tables, and steps: amounts over time, averaged for any zoom.
2. `charts` draws them, two worlds over each other; `metrics` names, formats and compares the metrics.
3. `page` writes one world, or two and their differences, as a page that loads nothing or as a section.
"""

from .page import Page, make, section, write
from .world import ResultWorld, read
