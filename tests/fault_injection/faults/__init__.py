"""Faults by name: each makes the scheduler do one thing that no scheduler may, and says which scenarios can see it."""

from __future__ import annotations

from tests.fault_injection.faults import acts, decisions, lives, queues, victims
from tests.fault_injection.faults.fault import Fault

__all__ = ["FAULTS", "Fault"]

FAULTS: dict[str, Fault] = {
    fault.name: fault for module in (acts, victims, queues, lives, decisions) for fault in module.FAULTS
}
