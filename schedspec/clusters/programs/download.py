"""Download an official release, or fail quickly with the reason.

One deadline covers everything: name resolution, connect, TLS, redirects, a slow body. Timeouts of sockets do not limit
their sum, so a separate process transfers the file and can be killed. Only the checksum in this repository decides
whether the content is right: some networks answer every connection with garbage.

Why not pooch: its timeout limits one read. With `HTTPDownloader(timeout=1)` pooch 1.9.0 took 9.8 s for a body of 30
bytes that arrived one by one, and would take hours for a larger one. In a process of its own pooch would replace the
thirty lines of `transfer.py` by itself and requests (6.5 MB).
"""

from __future__ import annotations

import hashlib
import sys
import tarfile
import time
from pathlib import Path
from urllib.parse import urlsplit

from .. import subprocess_run
from ..subprocess_run import Tick, silent
from . import transfer
from .pinned import Release


class DownloadError(Exception):
    """No release is available. `deaf` if no web server answered at all."""

    def __init__(self, host: str, why: str, *, deaf: bool = False) -> None:
        super().__init__(f"{host}: {why}")
        self.host, self.deaf = host, deaf


class Downloads:
    """Downloads of one run.

    A host is deaf if it did not begin to answer within `answer_seconds` or did not finish within `total_seconds`. A
    deaf host is not contacted again, so its deadline is paid once.
    """

    def __init__(self, *, answer_seconds: float = 6.0, total_seconds: float = 90.0) -> None:
        self.answer_seconds = answer_seconds
        self.total_seconds = total_seconds
        self._deaf: dict[str, DownloadError] = {}

    def fetch(self, release: Release, to: Path, tick: Tick = silent) -> None:
        """Put the executable program at `to` after its checksum was verified.

        Raises:
            DownloadError: the release is not available.
        """
        beside = to.with_name(to.name + ".download")
        try:
            self._get(release.url, beside, tick)
            got = sha256(beside)
            if got != release.sha256:
                raise DownloadError(_host(release.url), f"the checksum is {got}, not {release.sha256}")
            if release.member:
                _extract(beside, release.member, to)
            else:
                beside.replace(to)
            to.chmod(0o755)
        except DownloadError as error:
            if error.deaf:
                self._deaf[error.host] = error
            raise
        finally:
            beside.unlink(missing_ok=True)

    def _get(self, url: str, to: Path, tick: Tick) -> None:
        host = _host(url)
        if host in self._deaf:
            raise self._deaf[host]
        late = time.monotonic() + self.answer_seconds
        done = subprocess_run.run(
            [sys.executable, "-I", transfer.__file__, url, str(to)],
            deadline=self.total_seconds,
            give_up=lambda: time.monotonic() > late and not to.exists(),
            tick=tick,
            cwd=to.parent,
        )
        if done.status is None:
            raise DownloadError(host, f"not done after {done.seconds:.0f} s", deaf=True)
        if done.status != 0:
            why = done.last_lines.splitlines()[-1] if done.last_lines else "no answer"
            raise DownloadError(host, why, deaf=done.status != transfer.ANSWERED)


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _extract(archive: Path, member: str, to: Path) -> None:
    try:
        with tarfile.open(archive, "r:gz") as tar:
            source = tar.extractfile(member)
            if source is None:
                raise KeyError(member)
            to.write_bytes(source.read())
    except (tarfile.TarError, KeyError, OSError) as error:
        raise DownloadError("the archive", f"no {member} in it ({error})") from None


def _host(url: str) -> str:
    return urlsplit(url).netloc
