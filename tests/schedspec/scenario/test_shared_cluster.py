"""One cluster for several workers: created once, deleted last, one scenario at a time."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from schedspec.scenario.shared_cluster import ClusterHandle, SharedCluster

HANDLE = ClusterHandle("kind", False, "/kubeconfig", "kind-x", 1.0, 2.0, "spec-", None)


def never() -> ClusterHandle:
    raise AssertionError("the cluster runs already")


def test_the_first_worker_boots_the_cluster_and_the_others_use_it(tmp_path: Path) -> None:
    first, second = SharedCluster(tmp_path / "run"), SharedCluster(tmp_path / "run")
    assert first.enter(lambda: HANDLE) == HANDLE
    assert second.enter(never) == HANDLE
    assert (first.owns, second.owns) == (True, False)
    second.leave()
    first.leave()


def test_the_owner_leaves_last(tmp_path: Path) -> None:
    owner, other = SharedCluster(tmp_path / "run"), SharedCluster(tmp_path / "run")
    owner.enter(lambda: HANDLE)
    other.enter(never)
    order: list[str] = []

    def leave() -> None:
        owner.leave()
        order.append("owner")

    thread = threading.Thread(target=leave)
    thread.start()
    time.sleep(0.1)
    order.append("other")
    other.leave()
    thread.join(10)
    assert order == ["other", "owner"]


def test_a_worker_that_enters_after_the_end_boots_a_new_cluster(tmp_path: Path) -> None:
    first, late = SharedCluster(tmp_path / "run"), SharedCluster(tmp_path / "run")
    first.enter(lambda: HANDLE)
    first.leave()
    late.enter(lambda: HANDLE)
    assert late.owns
    late.leave()


def test_after_a_failed_boot_the_next_worker_boots_the_cluster(tmp_path: Path) -> None:
    first, second = SharedCluster(tmp_path / "run"), SharedCluster(tmp_path / "run")
    with pytest.raises(AssertionError):
        first.enter(never)
    second.enter(lambda: HANDLE)
    assert second.owns
    second.leave()


def test_one_scenario_at_a_time_uses_the_cluster(tmp_path: Path) -> None:
    workers = [SharedCluster(tmp_path / "run") for _ in range(4)]
    for number, worker in enumerate(workers):
        worker.enter(never if number else lambda: HANDLE)
    at_once: list[int] = []
    most: list[int] = []

    def scenario(worker: SharedCluster) -> None:
        for _ in range(5):
            with worker.turn():
                at_once.append(1)
                most.append(len(at_once))
                time.sleep(0.002)
                at_once.pop()

    threads = [threading.Thread(target=scenario, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(most), max(most)) == (20, 1)
    for worker in reversed(workers):
        worker.leave()
