"""Errors of a simulation's inputs: where, which field, which value, and what to do next."""

from __future__ import annotations

from ...scheduler.model.errors import PlacedError


class InputError(PlacedError):
    """An input that cannot be simulated."""


class RowError(InputError):
    """A row of a trace that is not a job."""

    def __init__(self, place: tuple[str, int], column: str, value: str, *, problem: str, remedy: str) -> None:
        source, line = place
        super().__init__(f"{source}:{line}", f"column {column}: {value!r} {problem}", remedy)
        self.line, self.column, self.value, self.problem = line, column, value, problem
        self.where = f"{source}:{line}"
        self.summary = f"column {column} {problem}"
