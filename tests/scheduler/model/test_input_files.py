"""Only regular files are read, whatever stands at their path, and pipes of this process where they are asked for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from schedspec.scheduler.model.input_files import NotAFileError, open_input, read_bytes, read_text

NO_FILES: dict[str, Callable[[Path], object]] = {
    "a FIFO": os.mkfifo,
    "a character device": lambda path: path.symlink_to("/dev/zero"),
    "a socket": lambda path: os.mknod(path, 0o600 | 0o140000),
}


@pytest.mark.parametrize("pipes", [False, True])
@pytest.mark.parametrize("kind", NO_FILES)
def test_what_is_not_a_regular_file_is_named(tmp_path: Path, kind: str, pipes: bool) -> None:
    NO_FILES[kind](path := tmp_path / "file")
    with pytest.raises(NotAFileError, match=f"{kind} is not a regular file") as refused:
        open_input(path, pipes=pipes)
    assert refused.value.filename == str(path)


def test_a_folder_is_refused_as_one(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        open_input(tmp_path)


@pytest.mark.parametrize("place", ["/dev/fd", "/proc/self/fd"])
def test_a_pipe_of_this_process_is_read_where_the_reader_permits_it(place: str) -> None:
    ours, theirs = os.pipe()
    try:
        os.write(theirs, b"text\n")
        os.close(theirs)
        with pytest.raises(NotAFileError, match="a FIFO"):
            open_input(Path(place, str(ours)))
        assert read_bytes(Path(place, str(ours)), pipes=True) == b"text\n"
    finally:
        os.close(ours)


def test_a_link_is_followed_unless_the_file_comes_from_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a\r\nb\n")
    (link := tmp_path / "link").symlink_to("file")
    assert read_text(link) == "a\nb\n"
    with pytest.raises(OSError, match="symbolic links"):
        open_input(link, links=False)
