"""Fetch an official release, or say quickly why not.

A deadline covers everything: names, connect, TLS, redirects, a body that drips. Timeouts of sockets cover none of that
as a sum, so the transfer is a process of its own that can be ended. What came is judged by its content only: there are
networks that answer every connection, with garbage.

Why not pooch: its time-out is that of one read. With ``HTTPDownloader(timeout=1)`` pooch 1.9.0 took 9.8 s for a body of
30 bytes that dripped one by one, and would have taken hours for a larger one; in a process of its own it would replace
the thirty lines of ``transfer.py`` by itself and requests (6.5 MB).
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tarfile
from pathlib import Path
from urllib.parse import urlsplit

from .. import subprocess_run
from ..subprocess_run import Tick, silent
from . import transfer
from .pinned import Release

_MAX_CHECKSUM_BYTES = 1 << 20
_HEX = re.compile(r"[0-9a-f]{64}")


class DownloadError(Exception):
    """No release could be had. `deaf` if the host gave no answer of a web server at all."""

    def __init__(self, host: str, why: str, *, deaf: bool = False) -> None:
        super().__init__(f"{host}: {why}")
        self.host, self.deaf = host, deaf


class Downloads:
    """Downloads of one run. A deaf host is not asked again: its deadline is paid once."""

    def __init__(self, *, checksum_seconds: float = 6.0, total_seconds: float = 90.0) -> None:
        self.checksum_seconds = checksum_seconds
        self.total_seconds = total_seconds
        self._deaf: dict[str, DownloadError] = {}

    def fetch(self, release: Release, to: Path, tick: Tick = silent) -> None:
        """Put the program at `to`, executable, with the checksum that its makers publish. Raises DownloadError."""
        beside = to.with_name(to.name + ".download")
        try:
            self._get(release.checksum_url, beside, self.checksum_seconds, tick, small=True)
            wanted = published_checksum(beside.read_bytes(), release.url)
            self._get(release.url, beside, self.total_seconds, tick)
            got = sha256(beside)
            if got != wanted:
                raise DownloadError(_host(release.url), f"the checksum is {got}, published is {wanted}")
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

    def _get(self, url: str, to: Path, deadline: float, tick: Tick, *, small: bool = False) -> None:
        host = _host(url)
        if host in self._deaf:
            raise self._deaf[host]
        most = str(_MAX_CHECKSUM_BYTES) if small else "0"
        done = subprocess_run.run(
            [sys.executable, "-I", transfer.__file__, url, str(to), most], deadline=deadline, tick=tick, cwd=to.parent
        )
        if done.status is None:
            raise DownloadError(host, f"not done after {deadline:.0f} s", deaf=True)
        if done.status != 0:
            why = done.last_lines.splitlines()[-1] if done.last_lines else "no answer"
            raise DownloadError(host, why, deaf=done.status != transfer.ANSWERED)


def published_checksum(text: bytes, url: str) -> str:
    """The SHA-256 that a text states for the file at `url`. Raises DownloadError if it states none."""
    host, file = _host(url), url.rsplit("/", 1)[-1]
    try:
        said = text.decode("ascii")
    except UnicodeDecodeError:
        raise DownloadError(host, "the published checksum is not text") from None
    if said.lstrip().startswith("{"):
        return _github_digest(said, host, file)
    for line in said.splitlines():
        words = line.split()
        if words and _HEX.fullmatch(words[0].lower()) and (len(words) == 1 or words[-1].lstrip("*") == file):
            return words[0].lower()
    raise DownloadError(host, f"no checksum of {file} in what it published")


def _github_digest(said: str, host: str, file: str) -> str:
    try:
        digests = {asset["name"]: asset.get("digest") or "" for asset in json.loads(said)["assets"]}
    except (ValueError, KeyError, TypeError):
        raise DownloadError(host, "the release's description is not what it should be") from None
    kind, _, digest = digests.get(file, "").partition(":")
    if kind != "sha256" or not _HEX.fullmatch(digest):
        raise DownloadError(host, f"no checksum of {file} in the release's description")
    return digest


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
