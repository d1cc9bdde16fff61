"""Run a written feature in the simulated cluster, and report whether it holds."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from .. import distribution, results
from ..api.errors import HarnessError

_SECONDS = 120.0


def problem_of(feature: Path) -> str:
    """Return why a feature does not pass in the simulated cluster; empty if it does."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--cluster", "simulated", "--out", folder, "-q", "-p", "no:cacheprovider"]
        command = [sys.executable, "-m", "pytest", "-p", "schedspec.plugin", str(feature.resolve()), *options]
        try:
            ran = subprocess.run(
                command,
                env=distribution.environment(),
                capture_output=True,
                text=True,
                check=False,
                timeout=_SECONDS,
                cwd=folder,
            )
            found = results.read(Path(folder) / results.FILE).results
        except subprocess.TimeoutExpired:
            return f"it did not end within {_SECONDS:g} s"
        except HarnessError:
            return "\n".join(ran.stdout.strip().splitlines()[-5:]) or ran.stderr.strip()[-500:] or "no output"
    failed = [result for result in found if result.verdict != "passed"]
    if failed or not found:
        return (
            "\n".join(result.why for result in failed if result.why) or ran.stdout.strip()[-800:] or "no scenario ran"
        )
    return ""


def unbroken(feature: Path, monitor: str) -> str:
    """Return why a feature shows no fault in the simulated cluster; empty if it shows one.

    Args:
        feature: The file.
        monitor: The monitor that has to find something; empty if any failure will do.
    """
    problem = problem_of(feature)
    if not problem:
        return "it passes in the simulated cluster"
    if f"monitor {monitor}" in problem or not monitor:
        return ""
    return f"it fails in the simulated cluster for another reason: {problem}"
