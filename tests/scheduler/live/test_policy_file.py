"""There is always one policy in force, and it is the newest good one."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from scheduler.live import policy_file
from scheduler.live.policy_file import InForce, PolicyFile, PolicyUnreadable
from scheduler.policy.loader import PolicyError

GOOD = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}]\n'
OTHER = 'actions: "allocate, backfill"\ntiers:\n- plugins: [{name: priority}]\n'
BAD = 'actions: "alocate"\n'


def test_without_a_file_the_default_is_in_force() -> None:
    assert PolicyFile(None).current.policy.actions == ("enqueue", "allocate", "backfill")


def test_a_changed_file_is_taken_over_and_told(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(GOOD)
    told: list[InForce] = []
    policy = PolicyFile(file, told.append)
    policy.look()
    assert told == []
    before = policy.current.sha256
    file.write_text(OTHER)
    policy.look()
    assert policy.current.policy.actions == ("allocate", "backfill")
    assert policy.current.sha256 != before
    assert told == [policy.current]


def test_a_bad_file_is_refused_and_the_old_one_stays_until_there_is_a_good_one(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(GOOD)
    told: list[InForce] = []
    policy = PolicyFile(file, told.append)
    good = policy.current
    file.write_text(BAD)
    policy.look()
    assert policy.current.policy is good.policy
    assert policy.current.sha256 == good.sha256
    assert "alocate" in policy.current.error
    assert f"{file}" in policy.current.error
    assert policy.current.refused_sha256 == hashlib.sha256(BAD.encode()).hexdigest()
    file.write_text(GOOD + "\n")
    policy.look()
    assert policy.current.error == policy.current.refused_sha256 == ""
    assert [bool(item.error) for item in told] == [True, False]


def test_a_file_on_which_the_reader_fails_is_refused_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(GOOD)
    told: list[InForce] = []
    policy = PolicyFile(file, told.append)
    with monkeypatch.context() as patched:
        patched.setattr(policy_file, "load_policy", lambda *_: 1 / 0)
        file.write_text(OTHER)
        policy.look()
    assert policy.current.text == GOOD
    assert "cannot be judged: ZeroDivisionError" in policy.current.error
    file.write_text(OTHER + "\n")
    policy.look()
    assert policy.current.policy.actions == ("allocate", "backfill")
    assert [bool(item.error) for item in told] == [True, False]


def test_a_file_that_went_away_is_told_and_the_old_policy_stays(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(GOOD)
    policy = PolicyFile(file)
    file.unlink()
    policy.look()
    assert policy.current.policy.actions == ("allocate",)
    assert "cannot read the policy file" in policy.current.error


def test_a_mounted_config_map_that_is_swapped_is_noticed_though_size_and_time_are_the_same(tmp_path: Path) -> None:
    for name, text in (("old", GOOD), ("new", GOOD.replace("gang", "drf "))):
        (tmp_path / name).write_text(text)
        os.utime(tmp_path / name, (1, 1))
    link = tmp_path / "policy.yaml"
    link.symlink_to("old")
    policy = PolicyFile(link)
    link.unlink()
    link.symlink_to("new")
    policy.look()
    assert policy.current.policy.plugin("drf") is not None


def test_a_start_with_a_bad_or_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PolicyUnreadable, match="name a readable one with --policy"):
        PolicyFile(tmp_path / "nothing")
    file = tmp_path / "policy.yaml"
    file.write_text(BAD)
    with pytest.raises(PolicyError):
        PolicyFile(file)
