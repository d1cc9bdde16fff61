"""Read the cases of `../shared/topology`: `cases.json` and `cases.yaml`, or those of `$TOPOLOGY_DIR`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import yaml

from tests.scheduler.conformance.cases import Case


def directory() -> Path:
    """Return the directory of the cases."""
    given = os.environ.get("TOPOLOGY_DIR")
    return Path(given) if given else Path(__file__).resolve().parents[3].parent / "shared" / "topology"


def cases() -> list[Case]:
    """Return the cases of `cases.json`; none without the file."""
    path = directory() / "cases.json"
    return msgspec.json.decode(path.read_bytes(), type=list[Case]) if path.is_file() else []


def tables() -> dict[str, Any]:
    """Return `cases.yaml`: probes, and node groups; empty without the file."""
    path = directory() / "cases.yaml"
    return yaml.safe_load(path.read_text("utf-8")) if path.is_file() else {}
