"""Faults by name. Each makes the scheduler do one thing wrong, and names the scenarios that can detect it."""

from __future__ import annotations

from tests.test_the_tests.faults import acts, cards, decisions, lives, network, queues, victims
from tests.test_the_tests.faults.fault import Fault

__all__ = ["FAULTS", "Fault"]

FAULTS: dict[str, Fault] = {
    fault.name: fault for module in (acts, victims, queues, network, cards, lives, decisions) for fault in module.FAULTS
}
