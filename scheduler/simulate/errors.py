"""Errors of a simulation's inputs: where, which field, which value, and what to do next."""

from __future__ import annotations


class InputError(ValueError):
    """An input that cannot be simulated. `place` is a file, a file with its line, or an option."""

    def __init__(self, place: str, problem: str, remedy: str) -> None:
        super().__init__(f"{place}: {problem}; {remedy}")
        self.place, self.problem, self.remedy = place, problem, remedy


class RowError(InputError):
    """A row of a trace that is not a job."""

    def __init__(self, place: tuple[str, int], column: str, value: str, *, problem: str, remedy: str) -> None:
        source, line = place
        super().__init__(f"{source}:{line}", f"column {column}: {value!r} {problem}", remedy)
        self.line, self.column, self.value = line, column, value
