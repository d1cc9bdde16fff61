"""Errors of a state's files: where, what is wrong, and what to do next."""

from __future__ import annotations


class StateError(ValueError):
    """A state that cannot be used. `place` is a file, or a file with its line or item."""

    def __init__(self, place: str, problem: str, remedy: str) -> None:
        super().__init__(f"{place}: {problem}; {remedy}")
        self.place, self.problem, self.remedy = place, problem, remedy


class CutStateError(StateError):
    """The file ends before the state is whole."""


class OtherVersionError(StateError):
    """The file was written by another version of the format."""


class TooOldError(StateError):
    """The state was taken too long ago."""


class TooLargeError(StateError):
    """The file is larger than any cluster's state."""


class ForeignStateError(StateError):
    """The objects of another queueing system decide in this cluster."""
