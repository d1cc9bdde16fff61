"""Reasons for programs: the annotations of an event, and the output of `explain -o json`.

Names and values are a public interface for reports and other tools. A value is a word, a number or JSON.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from ..model.resources import render_amount
from .text import render_denial, render_why
from .victims import VictimReason
from .waiting import Refusal

PREFIX = "schedspec.dev/"
_AMOUNTS = ("allocated", "deserved", "guarantee", "requested", "amount", "inqueue", "guaranteed_to_others", "left")
"""The fields of a reason that are amounts of its `dimension`."""


def refusal_annotations(refusal: Refusal) -> dict[str, str]:
    """Return why a job waits, as an annotation of its event: a JSON list with one object for each reason."""
    return {f"{PREFIX}waits": json.dumps(refusal_data(refusal))}


def refusal_data(refusal: Refusal) -> list[dict[str, Any]]:
    """Return each reason with its `type`, its fields and its `text`; amounts are quantities in Kubernetes' format."""
    found = []
    for why in refusal.items:
        data = {**_plain(msgspec.to_builtins(why)), "text": render_why(why)}
        for item, denial in zip(data.get("spared", ()), getattr(why, "spared", ()), strict=True):
            item["why"] = {**_rule(item["why"]), "text": render_denial(denial.why)}
        found.append(data)
    return found


def _rule(why: dict[str, Any]) -> dict[str, Any]:
    """Return a protection as its rule; if a plugin vetoed, with the plugin and the number of its tier, from 0."""
    if why["type"] != "vetoed" or why["why"] is None:
        return why
    return {**why["why"], "plugin": why["plugin"], "tier": why["tier"]}


def _plain(value: Any) -> Any:
    """Convert the amounts in a reason's fields, at any depth, to quantities."""
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    dimension = value.get("dimension")
    return {
        name: render_amount(dimension, item) if dimension and name in _AMOUNTS else _plain(item)
        for name, item in value.items()
    }


def victim_annotations(reason: VictimReason) -> dict[str, str]:
    """Return why a pod was evicted, as annotations of its event; tiers count from 1, as in a policy file."""
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
