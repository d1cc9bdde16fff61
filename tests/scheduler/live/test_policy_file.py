"""The policy in force is always the newest valid one."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from schedspec.scheduler.live import policy_file
from schedspec.scheduler.live.policy_file import InForce, PolicyFile
from schedspec.scheduler.policy.loader import PolicyError, UnreadablePolicyError, load_policy
from tests.support.fake_server import cancelled, until

GOOD = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}]\n'
OTHER = 'actions: "allocate, backfill"\ntiers:\n- plugins: [{name: priority}]\n'
BAD = 'actions: "alocate"\n'


def put(file: Path, text: str) -> None:
    """Write a file as a careful writer does: by one rename."""
    draft = file.with_suffix(".draft")
    draft.write_text(text)
    draft.replace(file)


def test_without_a_file_the_default_is_in_force() -> None:
    assert PolicyFile(None).current.policy.actions == ("enqueue", "allocate", "backfill")


def test_a_changed_file_is_loaded_and_reported(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    put(file, GOOD)
    reports: list[InForce] = []
    policy = PolicyFile(file, reports.append)
    policy.reload_if_changed()
    assert reports == []
    before = policy.current.sha256
    put(file, OTHER)
    policy.reload_if_changed()
    assert policy.current.policy.actions == ("allocate", "backfill")
    assert policy.current.sha256 != before
    assert reports == [policy.current]


PARTS = [OTHER[:length] for length in range(1, len(OTHER))]


@pytest.mark.parametrize("part", PARTS, ids=len)
def test_a_beginning_of_a_file_that_is_written_in_place_is_never_in_force(tmp_path: Path, part: str) -> None:
    now, file, reports = [0.0], tmp_path / "policy.yaml", list[InForce]()
    file.write_text(GOOD)
    policy = PolicyFile(file, reports.append, lambda: now[0])
    file.write_text(part)
    for _ in range(3):
        policy.reload_if_changed()
        now[0] += policy_file.QUIET / 4
    file.write_text(OTHER)
    policy.reload_if_changed()
    assert reports == []
    now[0] += policy_file.QUIET
    policy.reload_if_changed()
    assert [it.text for it in reports] == [OTHER]


def test_a_file_that_is_renamed_into_place_is_taken_at_once(tmp_path: Path) -> None:
    file, reports = tmp_path / "policy.yaml", list[InForce]()
    put(file, GOOD)
    policy = PolicyFile(file, reports.append, lambda: 0.0)
    put(file, OTHER)
    policy.reload_if_changed()
    assert [it.text for it in reports] == [OTHER]


def test_a_swap_of_a_mounted_config_map_is_taken_at_once(tmp_path: Path) -> None:
    for name, text in (("one", GOOD), ("two", OTHER)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "policy.yaml").write_text(text)
    (tmp_path / "..data").symlink_to("one")
    (tmp_path / "policy.yaml").symlink_to("..data/policy.yaml")
    policy = PolicyFile(tmp_path / "policy.yaml", clock=lambda: 0.0)
    (tmp_path / "..next").symlink_to("two")
    (tmp_path / "..next").replace(tmp_path / "..data")
    policy.reload_if_changed()
    assert policy.current.text == OTHER


def test_a_bad_file_is_refused_and_the_previous_policy_stays_in_force(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    put(file, GOOD)
    reports: list[InForce] = []
    policy = PolicyFile(file, reports.append)
    good = policy.current
    put(file, BAD)
    policy.reload_if_changed()
    assert policy.current.policy is good.policy
    assert policy.current.sha256 == good.sha256
    assert "alocate" in policy.current.error
    assert f"{file}" in policy.current.error
    assert policy.current.refused_sha256 == hashlib.sha256(BAD.encode()).hexdigest()
    put(file, GOOD + "\n")
    policy.reload_if_changed()
    assert policy.current.error == policy.current.refused_sha256 == ""
    assert [bool(item.error) for item in reports] == [True, False]


def test_a_file_on_which_the_loader_crashes_is_refused_like_a_bad_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "policy.yaml"
    put(file, GOOD)
    reports: list[InForce] = []
    policy = PolicyFile(file, reports.append)
    with monkeypatch.context() as patched:
        patched.setattr(policy_file, "load_policy", lambda *_: 1 / 0)
        put(file, OTHER)
        policy.reload_if_changed()
    assert policy.current.text == GOOD
    assert "unexpected error: ZeroDivisionError" in policy.current.error
    put(file, OTHER + "\n")
    policy.reload_if_changed()
    assert policy.current.policy.actions == ("allocate", "backfill")
    assert [bool(item.error) for item in reports] == [True, False]


def test_a_deleted_file_is_reported_and_the_previous_policy_stays(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    put(file, GOOD)
    policy = PolicyFile(file)
    file.unlink()
    policy.reload_if_changed()
    assert policy.current.policy.actions == ("allocate",)
    assert "cannot read the policy file" in policy.current.error


def test_a_swapped_config_map_of_equal_size_and_time_is_noticed(tmp_path: Path) -> None:
    for name, text in (("old", GOOD), ("new", GOOD.replace("gang", "drf "))):
        (tmp_path / name).write_text(text)
        os.utime(tmp_path / name, (1, 1))
    link = tmp_path / "policy.yaml"
    link.symlink_to("old")
    policy = PolicyFile(link)
    link.unlink()
    link.symlink_to("new")
    policy.reload_if_changed()
    assert policy.current.policy.plugin("drf") is not None


def test_a_start_with_a_bad_or_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnreadablePolicyError, match="name a readable file with --policy"):
        PolicyFile(tmp_path / "nothing")
    file = tmp_path / "policy.yaml"
    put(file, BAD)
    with pytest.raises(PolicyError):
        PolicyFile(file)


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


NOT_POLICIES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a FIFO": (os.mkfifo, "a FIFO is not a regular file"),
    "a link to a FIFO": (lambda path: (os.mkfifo(f"{path}.fifo"), path.symlink_to(f"{path}.fifo")), "a FIFO"),
    "an endless device": (lambda path: path.symlink_to("/dev/zero"), "a character device is not a regular file"),
    "a folder": (Path.mkdir, "Is a directory"),
    "a socket": (_socket, "a socket is not a regular file"),
    "a link to itself": (lambda path: path.symlink_to(path), "Too many levels"),
    "300 MB": (lambda path: (path.touch(), os.truncate(path, 300_000_000)), "larger than 1,048,576 bytes"),
    "a byte too many": (lambda path: path.write_text(GOOD.ljust((1 << 20) + 1)), "larger than 1,048,576 bytes"),
    "no text": (lambda path: path.write_bytes(b"\xff\xfe"), "not UTF-8"),
}


@pytest.mark.parametrize(("make", "why"), NOT_POLICIES.values(), ids=NOT_POLICIES)
def test_only_a_regular_file_of_bounded_size_is_read(make: Callable[[Path], Any], why: str, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    make(file)
    with pytest.raises(UnreadablePolicyError, match=why):
        PolicyFile(file)
    file.rename(tmp_path / "other") if not file.is_dir() else file.rmdir()
    put(file, GOOD)
    reports: list[InForce] = []
    policy = PolicyFile(file, reports.append, itertools.count(0.0, policy_file.QUIET).__next__)
    good = policy.current
    file.unlink()
    (tmp_path / "policy.yaml.fifo").unlink(missing_ok=True)
    make(file)
    policy.reload_if_changed()
    assert policy.current.policy is good.policy
    assert why in policy.current.error
    policy.reload_if_changed()
    assert len(reports) == 1
    file.rename(tmp_path / "another") if not file.is_dir() else file.rmdir()
    put(file, OTHER)
    policy.reload_if_changed()
    assert policy.current.policy.actions == ("allocate", "backfill")


async def test_a_large_file_is_parsed_while_the_event_loop_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "policy.yaml"
    put(file, GOOD)
    policy = PolicyFile(file)
    begun, may_end = threading.Event(), threading.Event()

    def slow(text: str, source: str) -> Any:
        begun.set()
        assert may_end.wait(60), "the event loop did not run while the file was parsed"
        return load_policy(text, source)

    monkeypatch.setattr(policy_file, "load_policy", slow)
    task = asyncio.create_task(policy.run())
    put(file, OTHER.ljust(1 << 20, "\n"))
    await until(begun.is_set)
    policy.reload_if_changed()  # as before each cycle
    assert policy.current.policy.actions == ("allocate",)
    may_end.set()
    await until(lambda: policy.current.policy.actions == ("allocate", "backfill"))
    await cancelled(task)
