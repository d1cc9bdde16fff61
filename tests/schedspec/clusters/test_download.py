"""Downloads are verified by checksum and end in time, whatever the network does."""

from __future__ import annotations

import hashlib
import io
import os
import socket
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from schedspec.clusters.programs.download import DownloadError, Downloads
from schedspec.clusters.programs.pinned import Release

PROGRAM = b"\x7fELF a program"
HEX = hashlib.sha256(PROGRAM).hexdigest()


def _hanging(connection: socket.socket) -> None:
    time.sleep(0.2)
    connection.recv(1 << 16)
    time.sleep(1.5)


def _dripping(connection: socket.socket) -> None:
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


def _at(address: str, member: str | None = None, sha256: str = HEX) -> Release:
    return Release(f"http://{address}/program", sha256, member)


def test_a_release_with_the_pinned_checksum_is_accepted(
    tmp_path: Path, serve_files: Callable[[dict[str, bytes]], str]
) -> None:
    Downloads().fetch(_at(serve_files({"/program": PROGRAM})), tmp_path / "p")
    assert (tmp_path / "p").read_bytes() == PROGRAM
    assert os.access(tmp_path / "p", os.X_OK)
    assert os.listdir(tmp_path) == ["p"]


def test_a_program_is_extracted_from_its_archive(
    tmp_path: Path, serve_files: Callable[[dict[str, bytes]], str]
) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        entry = tarfile.TarInfo("etcd-v1/etcd")
        entry.size = len(PROGRAM)
        tar.addfile(entry, io.BytesIO(PROGRAM))
    archive = packed.getvalue()
    digest = hashlib.sha256(archive).hexdigest()
    address = serve_files({"/program": archive})
    Downloads().fetch(_at(address, "etcd-v1/etcd", digest), tmp_path / "p")
    assert (tmp_path / "p").read_bytes() == PROGRAM
    with pytest.raises(DownloadError, match="no etcd-v2/etcd in it"):
        Downloads().fetch(_at(address, "etcd-v2/etcd", digest), tmp_path / "q")


@pytest.mark.parametrize(
    "sent", [PROGRAM + b"!", b"", b"<html>Please log in</html>"], ids=["one byte more", "nothing", "a page"]
)
def test_content_with_another_checksum_is_rejected(
    tmp_path: Path, serve_files: Callable[[dict[str, bytes]], str], sent: bytes
) -> None:
    address = serve_files({"/program": sent, "/program.sha256": hashlib.sha256(sent).hexdigest().encode()})
    with pytest.raises(DownloadError, match=f"the checksum is {hashlib.sha256(sent).hexdigest()}, not {HEX}"):
        Downloads().fetch(_at(address), tmp_path / "p")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("handle", "seconds", "why"),
    [
        (_hanging, 1, r"not finished after \d+ s"),
        (_dripping, 1, r"not finished after \d+ s"),
        (_garbage, 30, "no answer of a web server"),
        (_cut_short, 30, "only 20 of 64 bytes arrived|IncompleteRead"),
    ],
)
def test_a_download_from_a_faulty_network_ends_in_time(
    tmp_path: Path,
    serve: Callable[[Callable[[socket.socket], None]], str],
    handle: Callable[[socket.socket], None],
    seconds: float,
    why: str,
) -> None:
    address = serve(handle)
    with pytest.raises(DownloadError, match=why) as caught:
        Downloads(answer_seconds=seconds).fetch(_at(address), tmp_path / "p")
    assert str(caught.value).startswith(address)
    assert os.listdir(tmp_path) == []


def test_a_host_that_failed_is_not_contacted_again(
    tmp_path: Path, serve: Callable[[Callable[[socket.socket], None]], str]
) -> None:
    requests: list[int] = []

    def handle(connection: socket.socket) -> None:
        requests.append(1)
        _garbage(connection)

    downloads = Downloads()
    release = _at(serve(handle))
    for _ in range(3):
        with pytest.raises(DownloadError):
            downloads.fetch(release, tmp_path / "p")
    assert len(requests) == 1


def test_the_error_for_a_missing_release_has_the_http_status(
    tmp_path: Path, serve_files: Callable[[dict[str, bytes]], str]
) -> None:
    with pytest.raises(DownloadError, match="404"):
        Downloads().fetch(_at(serve_files({})), tmp_path / "p")


@pytest.mark.parametrize("handle", [_hanging, _garbage])
def test_only_a_host_that_answers_offers_a_release(
    serve: Callable[[Callable[[socket.socket], None]], str],
    serve_files: Callable[[dict[str, bytes]], str],
    handle: Callable[[socket.socket], None],
) -> None:
    downloads = Downloads(answer_seconds=0.5)
    assert downloads.offer(_at(serve_files({"/program": PROGRAM})))
    assert not downloads.offer(_at(serve_files({})))
    assert not downloads.offer(_at(serve(handle)))
