"""Build hook of the wheel: record from which published commit it was built (`schedspec/cli/published.py`)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class RecordOrigin(BuildHookInterface[Any]):
    """Adds the record to the wheel; a checkout that is not published has none."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - the interface's
        """Write the record, and name it as a file of the wheel."""
        path = Path(self.root, "schedspec", "cli", "published.py")
        spec = importlib.util.spec_from_file_location("published", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        if name := module.published(Path(self.root)):
            file = Path(self.directory, "origin.txt")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{name}\n", "utf-8")
            build_data["force_include"][str(file)] = "schedspec/cli/origin.txt"
