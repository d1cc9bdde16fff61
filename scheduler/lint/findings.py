"""One finding of lint."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """What stands where, what is wrong with it, and what to write instead."""

    source: str
    line: int
    field: str
    text: str
    remedy: str
    is_error: bool = False

    def render(self) -> str:
        """The finding in the form that editors jump to."""
        kind = "error" if self.is_error else "warning"
        return f"{self.source}:{self.line}: {kind}: {self.field}: {self.text}; {self.remedy}"
