"""Fixtures that several rooms of the scheduler use."""

from __future__ import annotations

from tests.support.registrable import registrable

__all__ = ["registrable"]
