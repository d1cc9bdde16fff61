"""Notes for a plan of a cluster that another scheduler serves: its known differences from ours."""

from __future__ import annotations

from pathlib import Path

from ..schedulers import known

_KNOWN = Path(known.__file__).with_name("volcano_known.yaml")
_TOUCHES = {
    "gang": ("gang",),
    "lifecycle": ("reclaim", "preempt"),
    "queue_capacity": ("capacity",),
    "queue_weights": ("proportion",),
    "hierarchy": ("enableHierarchy", "hierarchy"),
    "cross_queue_reclaim": ("reclaim",),
}
"""Folder of features → words of a policy that their differences concern."""
_MOST = 4


def foreign_notes(schedulers: list[str], policies: tuple[str, str]) -> list[str]:
    """Return the notes, which the plan begins with, if the pods name another scheduler."""
    others = sorted({*schedulers} - {"schedspec"})
    if not others:
        return []
    notes = [f"{', '.join(others)} schedules this cluster; this plan was computed by schedspec's scheduler"]
    if "volcano" not in others:
        return notes
    entries = {
        difference.instead
        for difference in known.read(_KNOWN)
        if any(word in text for word in _TOUCHES.get(difference.feature.partition("/")[0], ()) for text in policies)
    }
    found = [f"known difference of Volcano: {' '.join(text.split())}" for text in sorted(entries)]
    return notes + found[:_MOST] + ([f"and {len(found) - _MOST} more known differences"] if len(found) > _MOST else [])
