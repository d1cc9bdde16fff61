"""The program of the worker image, built from kind-config/worker; there is no release of it."""

from __future__ import annotations

import hashlib

from ..paths import kind_config
from .pinned import Program, target


class SourceProgram(Program):
    """A program whose sources are in the folder of its go.mod. The sources are part of the key."""

    __slots__ = ()

    @property
    def key(self) -> str:
        digest = hashlib.sha256("\0".join([self.name, self.version, self.package, self.ldflags, *target()]).encode())
        sources = kind_config() / "worker"
        for source in sorted([*sources.glob("go.*"), *sources.glob("*.go")]):
            digest.update(f"\0{source.name}\0".encode() + source.read_bytes())
        return digest.hexdigest()[:12]


def worker() -> Program:
    """Return the program of the worker image; kind-config/worker/main.go documents its arguments."""
    return SourceProgram("worker", "v1", kind_config() / "worker", ".", "", None)
