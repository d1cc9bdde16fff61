"""Check a folder of `--scheduler-binaries` before anything boots: its programs, and the definitions in `crds/`.

A scheduler waits, for minutes or for ever, for a kind that the API server does not serve. So a folder must have the
definition of every kind that its programs watch.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import yaml

CRDS = "crds"
"""The folder of the definitions, in the folder of the programs."""


def missing(folder: Path, programs: Sequence[str], definitions: Mapping[str, str]) -> list[str]:
    """Return the parts that a folder lacks, in words.

    `definitions`: the names of the definitions that `crds/` must have. A text with a name is a Go package: only
    versions whose program contains that package watch the kind.
    """
    found = [f"program {name}" for name in programs if not os.access(folder / name, os.X_OK)]
    if not definitions:
        return found
    if not (folder / CRDS).is_dir():
        return [*found, f"folder {CRDS}/ with the definitions of that version"]
    broken: list[str] = []
    names = {name for file in sorted((folder / CRDS).glob("*.yaml")) for name in _names_in(file, broken)}
    lacking = sorted(
        name for name, package in definitions.items() if name not in names and _has(folder, programs, package)
    )
    return [*found, *broken, *(f"{name} in {CRDS}/" for name in lacking)]


def _names_in(file: Path, broken: list[str]) -> Iterator[str]:
    """Yield the names of the definitions in a file. Add a file that is not YAML to `broken`."""
    try:
        for document in yaml.load_all(file.read_text("utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            if isinstance(document, dict) and document.get("kind") == "CustomResourceDefinition":
                yield str((document.get("metadata") or {}).get("name"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        broken.append(f"YAML in {CRDS}/{file.name}")


def _has(folder: Path, programs: Sequence[str], package: str) -> bool:
    """Whether a program contains a Go package; programs keep the names of their functions."""
    paths = [folder / name for name in programs]
    return not package or any(package.encode() in path.read_bytes() for path in paths if path.is_file())
