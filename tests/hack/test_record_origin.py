"""The build hook adds the published commit to the wheel, and nothing if there is none."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from hack.record_origin import RecordOrigin
from schedspec.cli import published

COMMIT = "o/schedspec@0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize("name", [COMMIT, ""])
def test_the_wheel_has_the_commit_from_which_it_was_built(tmp_path: Path, name: str) -> None:
    (tmp_path / "schedspec/cli").mkdir(parents=True)
    shutil.copy(published.__file__, tmp_path / "schedspec/cli/published.py")
    with (tmp_path / "schedspec/cli/published.py").open("a") as file:
        file.write(f"\n\ndef published(checkout: Path) -> str:\n    return {name!r}\n")
    hook = RecordOrigin(str(tmp_path), {}, Mock(), Mock(), str(tmp_path / "dist"), "wheel")
    data: dict[str, Any] = {"force_include": {}}
    hook.initialize("standard", data)
    found = {Path(source).read_text().strip(): target for source, target in data["force_include"].items()}
    assert found == ({name: f"schedspec/cli/{published.RECORD.name}"} if name else {})
