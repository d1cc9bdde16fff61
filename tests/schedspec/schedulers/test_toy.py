"""The example scheduler of docs/adapters.md, copied as a new user would copy it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from schedspec.results import read

ROOT = Path(__file__).parents[3]


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    page = (ROOT / "docs/adapters.md").read_text("utf-8")
    (tmp_path / "toy.py").write_text(page.split("```python\n")[1].split("```")[0], "utf-8")
    return tmp_path


def test_the_example_has_at_most_60_lines(toy: Path) -> None:
    assert sum(bool(line.strip()) for line in (toy / "toy.py").read_text("utf-8").splitlines()) <= 60


@pytest.mark.embedded
def test_the_example_runs_and_gets_verdicts(toy: Path) -> None:
    feature = ROOT / "features/gang/all_or_none.feature"
    command = [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(ROOT)),
        *("-c", str(ROOT / "pyproject.toml"), "--cluster", "embedded"),
        *("--scheduler", "toy:FirstFit", "--out", str(toy / "out"), "--timeout-scale", "0.5", str(feature)),
    ]
    path = f"{toy}:{ROOT}"
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    verdicts = {it.scenario: it.verdict for it in read(toy / "out").results}
    assert verdicts["A gang that fits runs"] == "passed", done.stdout
    broken = "A gang that does not fit as a whole binds nothing, and runs as soon as it fits"
    assert verdicts[broken] == "failed", done.stdout
