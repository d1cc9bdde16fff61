"""A finding of lint."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LintFinding:
    """A finding: its place, the problem and the remedy."""

    source: str
    line: int
    field: str
    text: str
    remedy: str
    is_error: bool = False

    def render(self) -> str:
        """Return the finding in a form that editors can jump to."""
        kind = "error" if self.is_error else "warning"
        return f"{self.source}:{self.line}: {kind}: {self.field}: {self.text}; {self.remedy}"
