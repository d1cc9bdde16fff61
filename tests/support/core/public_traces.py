"""Find the public traces. They are not part of the repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

TRACES = Path(os.environ.get("SCHEDSPEC_TRACES") or Path(__file__).parents[4] / "shared" / "traces")


def public_trace(name: str) -> Path:
    """Return the path of a trace, or skip the test."""
    if not (TRACES / name).is_file():
        pytest.skip(f"no trace at {TRACES / name}; name its folder in SCHEDSPEC_TRACES")
    return TRACES / name
