"""Errors about the files of a state; each names the place, the problem and a remedy."""

from __future__ import annotations

from ...scheduler.model.errors import PlacedError


class StateError(PlacedError):
    """A state that cannot be used."""


class CutStateError(StateError):
    """The file ends before the state is complete."""


class OtherVersionError(StateError):
    """The file was written by another version of the format."""


class TooOldError(StateError):
    """The state was taken too long ago."""


class TooLargeError(StateError):
    """The file is larger than any cluster's state."""


class ForeignStateError(StateError):
    """Another queueing system decides in this cluster."""
