"""Faults with shared cards: in the assigned amounts of a card, and in the annotations for the device plugin."""

from __future__ import annotations

from typing import Any

from schedspec.scheduler.model.card_notation import Card
from schedspec.scheduler.placement import card_choice
from schedspec.scheduler.plugins.deviceshare import DeviceShare
from tests.test_the_tests.faults.fault import Fault, always, instead


def _any_usable(_question: Any, _part: Any, card: Card, *_: Any) -> bool:
    return card.is_usable


FAULTS = (
    Fault(
        "shares-beyond-memory",
        "assigns parts of a card whose memory is in use",
        instead((card_choice, "fits", _any_usable)),
        ("parts_of_cards: A pod waits if no single", "parts_of_cards: A gang waits as a whole where one"),
    ),
    Fault(
        "names-no-card",
        "binds pods without naming their cards",
        instead((DeviceShare, "bind_annotations", always({}))),
        ("parts_of_cards: Pods share one card", "virtual_gpus: A pod that wants two cards"),
    ),
)
