"""Reasons as programs read them: the annotations of an event.

Names and values are an interface: reports and other tools read them. A value is a word, a number or a JSON object.
"""

from __future__ import annotations

import json

from .victims import VictimReason

PREFIX = "schedspec.dev/"


def victim_annotations(reason: VictimReason) -> dict[str, str]:
    """Why a pod had to go, as annotations of its event; tiers count from 1, as a policy file is read."""
    found = {
        "preemptor-job": reason.preemptor,
        "preemptor-queue": reason.preemptor_queue,
        "victim-queue": reason.queue,
        "whole-gang": "true" if reason.whole_gang else "",
    }
    if reason.votes:
        found["tier"] = str(reason.tier + 1)
        found["votes"] = json.dumps({plugin: "permits" if permits else "vetoes" for plugin, permits in reason.votes})
    return {PREFIX + name: value for name, value in found.items() if value}
