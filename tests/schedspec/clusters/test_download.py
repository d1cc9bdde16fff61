"""Downloads are judged by content and end in time, whatever the network does."""

from __future__ import annotations

import hashlib
import io
import json
import os
import socket
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from schedspec.clusters.programs.download import DownloadError, Downloads, published_checksum
from schedspec.clusters.programs.pinned import Release

PROGRAM = b"\x7fELF a program"
HEX = hashlib.sha256(PROGRAM).hexdigest()


def _hang(connection: socket.socket) -> None:
    time.sleep(0.2)
    connection.recv(1 << 16)
    time.sleep(1.5)


def _drip(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    for _ in range(40):
        connection.sendall(b"X: y\r\n")
        time.sleep(0.05)


def _garbage(connection: socket.socket) -> None:
    connection.recv(1 << 16)
    connection.sendall(os.urandom(4096))


def _cut_short(connection: socket.socket) -> None:
    connection.recv(1 << 16)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n" + HEX[:20].encode())


def _at(address: str, member: str | None = None) -> Release:
    return Release(f"http://{address}/program", f"http://{address}/program.sha256", member)


@pytest.mark.parametrize("said", [HEX, f"{HEX}  program\n", f"{'0' * 64}  other\n{HEX} *program\n"])
def test_a_release_with_the_published_checksum_is_taken(
    tmp_path: Path, serve_files: Callable[[dict[str, bytes]], str], said: str
) -> None:
    address = serve_files({"/program": PROGRAM, "/program.sha256": said.encode()})
    Downloads().fetch(_at(address), tmp_path / "p")
    assert (tmp_path / "p").read_bytes() == PROGRAM
    assert os.access(tmp_path / "p", os.X_OK)
    assert os.listdir(tmp_path) == ["p"]


def test_a_program_is_taken_out_of_its_archive(tmp_path: Path, serve_files: Callable[[dict[str, bytes]], str]) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        entry = tarfile.TarInfo("etcd-v1/etcd")
        entry.size = len(PROGRAM)
        tar.addfile(entry, io.BytesIO(PROGRAM))
    archive = packed.getvalue()
    said = f"{hashlib.sha256(archive).hexdigest()}  program\n".encode()
    address = serve_files({"/program": archive, "/program.sha256": said})
    Downloads().fetch(_at(address, "etcd-v1/etcd"), tmp_path / "p")
    assert (tmp_path / "p").read_bytes() == PROGRAM
    with pytest.raises(DownloadError, match="no etcd-v2/etcd in it"):
        Downloads().fetch(_at(address, "etcd-v2/etcd"), tmp_path / "q")


def test_another_checksum_than_the_published_one_is_refused(
    tmp_path: Path, serve_files: Callable[[dict[str, bytes]], str]
) -> None:
    address = serve_files({"/program": PROGRAM + b"!", "/program.sha256": HEX.encode()})
    with pytest.raises(DownloadError, match=f"published is {HEX}"):
        Downloads().fetch(_at(address), tmp_path / "p")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"<html>Please log in</html>", "no checksum of program in what it published"),
        (os.urandom(64) + b"\xff", "the published checksum is not text"),
        (b"", "no checksum of program"),
        (f"{HEX}  other".encode(), "no checksum of program"),
        (b"{}", "the release's description is not what it should be"),
        (
            json.dumps({"assets": [{"name": "program", "digest": None}]}).encode(),
            "no checksum of program in the release",
        ),
    ],
    ids=["a page", "bytes", "nothing", "of another file", "another JSON", "no digest"],
)
def test_what_is_not_a_checksum_is_refused(said: bytes, why: str) -> None:
    with pytest.raises(DownloadError, match=why):
        published_checksum(said, "https://example.test/program")


def test_a_digest_in_the_description_of_a_release_is_a_checksum() -> None:
    said = json.dumps({"assets": [{"name": "other"}, {"name": "program", "digest": f"sha256:{HEX}"}]}).encode()
    assert published_checksum(said, "https://example.test/program") == HEX


@pytest.mark.parametrize(
    ("treat", "why"),
    [
        (_hang, "not done after 1 s"),
        (_drip, "not done after 1 s"),
        (_garbage, "no answer of a web server"),
        (_cut_short, "only 20 of 64 bytes came|IncompleteRead"),
    ],
)
def test_a_network_that_answers_anything_ends_in_time(
    tmp_path: Path,
    serve: Callable[[Callable[[socket.socket], None]], str],
    treat: Callable[[socket.socket], None],
    why: str,
) -> None:
    address = serve(treat)
    start = time.monotonic()
    with pytest.raises(DownloadError, match=why) as caught:
        Downloads(checksum_seconds=1).fetch(_at(address), tmp_path / "p")
    assert time.monotonic() - start < 5
    assert str(caught.value).startswith(address)
    assert os.listdir(tmp_path) == []


def test_a_host_that_failed_is_not_asked_again(
    tmp_path: Path, serve: Callable[[Callable[[socket.socket], None]], str]
) -> None:
    asked: list[int] = []

    def treat(connection: socket.socket) -> None:
        asked.append(1)
        _garbage(connection)

    downloads = Downloads()
    release = _at(serve(treat))
    for _ in range(3):
        with pytest.raises(DownloadError):
            downloads.fetch(release, tmp_path / "p")
    assert len(asked) == 1


def test_a_missing_release_is_said_to_be_missing(
    tmp_path: Path, serve_files: Callable[[dict[str, bytes]], str]
) -> None:
    with pytest.raises(DownloadError, match="404"):
        Downloads().fetch(_at(serve_files({})), tmp_path / "p")
