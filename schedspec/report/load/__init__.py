"""Render a simulation's result as a page: what queues held, who waited and why, who took from whom; one world or two.

1. `steps` keeps amounts over time, exactly, and averages them for a picture at any zoom.
2. `world` reads a result file into such steps, distributions and tables, whose size does not grow with the load.
3. `charts` draws them; `page` puts them into a file that loads nothing, or into a section of another page.
"""

from .page import Page, make, section, write
from .world import World, read

__all__ = ["Page", "World", "make", "read", "section", "write"]
