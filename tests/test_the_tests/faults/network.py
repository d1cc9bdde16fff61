"""Faults with the network topology: how close the pods of a gang are to each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from schedspec.scheduler.model.objects import NetworkTopology
from schedspec.scheduler.placement.domain_choice import DomainChoice
from tests.test_the_tests.faults.fault import Fault, always, instead

_candidates, _inner = DomainChoice.candidates, DomainChoice.inner


def _anywhere_if_preferred(self: Any, closeness: Any, wanted: Any, inside: Any) -> Iterator[Any]:
    if closeness.is_hard:
        yield from _candidates(self, closeness, wanted, inside)
    else:
        yield inside


def _no_part_if_preferred(self: Any, closeness: Any, domain: Any, *others: Any) -> Any:
    return _inner(self, closeness, domain, *others) if closeness.is_hard else domain


def _as_if_nothing_ran(self: Any, closeness: Any, wanted: Any, inside: Any) -> Iterator[Any]:
    yield from _candidates(self, closeness, replace(wanted, held=()), inside)


FAULTS = (
    Fault(
        "required-is-preferred",
        "spreads a gang over racks although it requires one",
        instead((NetworkTopology, "is_hard", property(always(False)))),
        ("topology/close_together: A gang waits",),
    ),
    Fault(
        "prefers-nothing",
        "ignores that a gang prefers one rack",
        instead((DomainChoice, "candidates", _anywhere_if_preferred), (DomainChoice, "inner", _no_part_if_preferred)),
        ("topology/close_together: A gang that prefers a rack stays",),
    ),
    Fault(
        "forgets-its-rack",
        "places further pods of a gang in any rack, although its other pods run in one",
        instead((DomainChoice, "candidates", _as_if_nothing_ran)),
        ("topology/leaving_node", "topology/close_together: A gang grows"),
    ),
)
