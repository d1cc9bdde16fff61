"""Render a plan as a page: the immediate effects as a difference and side by side, then the effects on a load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from markupsafe import Markup

from ...report import files, html
from ..simulate import pages as load
from .answer import Plan
from .text import decider_of

_MAX_ROWS = 200
"""Maximum number of rows of a table; plan.json has all rows."""


def write(plan: Plan, results: Mapping[str, Path], queues: Sequence[str], path: Path) -> Path:
    """Write the page.

    `results`: the result file of each world, `now` and `proposed`; empty without a load. `queues`: a sentence for each
    queue that holds another amount. Raises OSError: the file cannot be written; ValueError: a result was cut off.
    """
    section = Markup()
    if results:
        worlds = [load.read(file, name, keeps_waits=True) for name, file in results.items()]
        section = load.section(load.make(worlds, named=plan.named))
    files.make_folder(path.parent, private=False)
    text = html.template("plan.html.j2").render(
        plan=plan, decider=decider_of(plan), queues=queues, load=section, most=_MAX_ROWS
    )
    path.write_text(text, "utf-8")
    return path
