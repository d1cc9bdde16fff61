"""The program of the worker image, run on this machine."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from schedspec.clusters.images.worker_image import worker
from schedspec.clusters.paths import cache_root
from schedspec.clusters.programs import build
from schedspec.clusters.programs.binaries import Provider
from schedspec.clusters.programs.cache import Cache
from schedspec.clusters.programs.download import Downloads
from tests.support.cluster_api import within

pytestmark = pytest.mark.skipif(build.go() is None, reason="Go is not installed")


@pytest.fixture(scope="module")
def program() -> Path:
    return Provider(Cache(cache_root()), Downloads(), None, print).provide([worker()])["worker"].path


@contextmanager
def listening(program: Path, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a running worker that listens for signals."""
    with subprocess.Popen([program, "run", *words]) as process:
        comm = Path(f"/proc/{process.pid}/comm")
        within(lambda: comm.read_text().strip(), lambda name: name == "worker-listens")
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["run", "--for", "0"], 0),
        (["run", "--for", "0.01", "--exit", "7"], 7),
        (["--for", "0", "--exit", "3"], 3),
        (["run", "--for", "-1"], 2),
        (["run", "--exit", "256"], 2),
        (["run", "--frobnicate"], 2),
        (["run", "now"], 2),
        (["sleep"], 1),
    ],
)
def test_the_worker_exits_with_the_given_code_and_rejects_unknown_arguments(
    words: list[str], status: int, program: Path
) -> None:
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=10, check=False)
    assert done.returncode == status
    assert bool(done.stderr) == (status in (1, 2))


def test_the_worker_exits_at_once_on_sigterm(program: Path) -> None:
    with listening(program, "--exit", "7") as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == 143


def test_with_ignore_term_the_worker_ignores_sigterm_and_still_finishes(program: Path) -> None:
    with listening(program, "--exit", "7", "--ignore-term") as process:
        process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.2)
        process.send_signal(signal.SIGUSR1)  # what `finish` sends to pid 1
        assert process.wait(5) == 7
