"""Write notes on known differences, for a plan of a cluster that another scheduler serves."""

from __future__ import annotations

from pathlib import Path

from ...schedulers import ADAPTERS, known

_KNOWN = Path(known.__file__).with_name("volcano_known.yaml")
_TOUCHES = {
    "gang": ("gang",),
    "lifecycle": ("reclaim", "preempt"),
    "queue_capacity": ("capacity",),
    "queue_weights": ("proportion",),
    "hierarchy": ("enableHierarchy", "hierarchy"),
    "cross_queue_reclaim": ("reclaim",),
}
"""Folder of features → words in a policy to which known differences of these features apply."""


def foreign_notes(schedulers: list[str], policies: tuple[str, str]) -> list[str]:
    """Return the notes at the top of a plan; none unless the pods name another scheduler."""
    others = sorted({*schedulers} - {"schedspec"})
    if not others:
        return []
    asks = f"--scheduler {others[0]} asks its own program" if others[0] in ADAPTERS else "a model of it"
    notes = [f"{', '.join(others)} schedules this cluster; this plan was computed by schedspec's scheduler ({asks})"]
    if "volcano" not in others:
        return notes
    entries = {
        difference.instead
        for difference in known.read(_KNOWN)
        if any(word in text for word in _TOUCHES.get(difference.feature.partition("/")[0], ()) for text in policies)
    }
    return notes + [f"known difference of Volcano: {' '.join(text.split())}" for text in sorted(entries)]
