"""Download an official release, or fail quickly with the reason.

One deadline covers everything: name resolution, connect, TLS, redirects, a slow body. Socket timeouts do not limit the
total time, so a separate process transfers the file and can be killed. Only the checksum in this repository decides
whether the content is right: some networks answer every connection with garbage.

Why not pooch: its timeout limits one read. With `HTTPDownloader(timeout=1)` pooch 1.9.0 took 9.8 s for a body of 30
bytes that arrived one by one, and would take hours for a larger one. In a separate process, pooch and requests (6.5 MB)
would replace no more than the thirty lines of `transfer.py`.
"""

from __future__ import annotations

import hashlib
import sys
import tarfile
import time
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from .. import subprocess_run
from ..subprocess_run import Tick, silent
from . import transfer
from .pinned import Release


class DownloadError(Exception):
    """No release is available. `unresponsive` if the host did not answer, or not in time."""

    def __init__(self, host: str, why: str, *, unresponsive: bool = False) -> None:
        super().__init__(f"{host}: {why}")
        self.host, self.unresponsive = host, unresponsive


class Downloads:
    """Downloads of one run.

    A host is unresponsive if it did not begin to answer within `answer_seconds` or did not finish within
    `total_seconds`. An unresponsive host is not contacted again, so that a run waits for it only once.
    """

    def __init__(self, *, answer_seconds: float = 6.0, total_seconds: float = 90.0) -> None:
        self.answer_seconds = answer_seconds
        self.total_seconds = total_seconds
        self._unresponsive: dict[str, DownloadError] = {}

    def fetch(self, release: Release, to: Path, tick: Tick = silent) -> None:
        """Write the executable program to `to` after verifying the checksum of the download.

        Raises:
            DownloadError: the release is not available.
        """
        partial = to.with_name(to.name + ".download")
        try:
            self._get(release.url, partial, tick)
            actual = sha256(partial)
            if actual != release.sha256:
                raise DownloadError(_host(release.url), f"the checksum is {actual}, not {release.sha256}")
            if release.member:
                _extract(partial, release.member, to)
            else:
                partial.replace(to)
            to.chmod(0o755)
        except DownloadError as error:
            if error.unresponsive:
                self._unresponsive[error.host] = error
            raise
        finally:
            partial.unlink(missing_ok=True)

    def offer(self, release: Release) -> bool:
        """Whether the host of a release answers that it has the file; each host that does not answer is asked once."""
        host = _host(release.url)
        if host in self._unresponsive:
            return False
        try:
            with urlopen(Request(release.url, method="HEAD"), timeout=self.answer_seconds) as answer:  # noqa: S310
                return bool(answer.status == HTTPStatus.OK)
        except HTTPError:
            return False
        except (OSError, HTTPException, ValueError) as error:
            self._unresponsive[host] = DownloadError(host, str(error), unresponsive=True)
            return False

    def _get(self, url: str, to: Path, tick: Tick) -> None:
        host = _host(url)
        if host in self._unresponsive:
            raise self._unresponsive[host]
        late = time.monotonic() + self.answer_seconds
        done = subprocess_run.run(
            [sys.executable, "-I", transfer.__file__, url, str(to)],
            deadline=self.total_seconds,
            give_up=lambda: time.monotonic() > late and not to.exists(),
            tick=tick,
            cwd=to.parent,
        )
        if done.status is None:
            raise DownloadError(host, f"not finished after {done.seconds:.0f} s", unresponsive=True)
        if done.status != 0:
            why = done.last_lines.splitlines()[-1] if done.last_lines else "no answer"
            raise DownloadError(host, why, unresponsive=done.status != transfer.ANSWERED)


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
