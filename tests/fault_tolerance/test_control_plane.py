"""The API server or etcd fails under load: the scheduler finishes its work when they are back."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.live.target_cluster import TargetCluster

pytestmark = [pytest.mark.embedded, pytest.mark.faults]

GANGS, SIZE = 60, 5


def _process(target: TargetCluster, name: str) -> psutil.Process:
    """Return the process of a component of this test's cluster, which has the cluster's folder in its command line."""
    folder = str(Path(target.certificates).parent.parent)
    for process in psutil.process_iter(["name", "cmdline"]):
        line = process.info["cmdline"] or []
        if process.info["name"] == name and any(folder in part for part in line):
            return process
    raise AssertionError(f"no process {name} of {folder} runs")


async def _etcd(target: TargetCluster, path: str, body: dict[str, Any]) -> Any:
    """Call a method of etcd, which serves plain HTTP."""
    option = "--listen-client-urls="
    [urls] = [part for part in _process(target, "etcd").cmdline() if part.startswith(option)]
    request = urllib.request.Request(f"{urls.removeprefix(option)}/v3/{path}", json.dumps(body).encode())
    return json.loads(await asyncio.to_thread(lambda: urllib.request.urlopen(request, timeout=30).read()))


async def _load(target: TargetCluster) -> None:
    for i in range(GANGS):
        await target.gang(f"g{i}", SIZE)


# If the server ends between a connect and its TLS handshake, Python's ssl module leaks the socket: SSLSocket._create
# does not close it when recv raises ECONNRESET.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <ssl.SSLSocket:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.deadline(200)
async def test_all_gangs_are_bound_although_the_api_server_is_killed_and_restarted(target: TargetCluster) -> None:
    async with target.scenario(nodes=10, cpu="64"):
        await _load(target)
        server = _process(target, "kube-apiserver")
        command, folder = server.cmdline(), server.cwd()
        scheduler = target.start()
        await target.history.until(lambda: len(target.history.bound()) >= 30, "binds are under way")
        server.kill()
        server.wait(10)
        revision = (await _etcd(target, "kv/range", {"key": "YQ=="}))["header"]["revision"]
        await _etcd(target, "kv/compaction", {"revision": revision})  # no watch can go on from its last version
        await target.history.until(lambda: "no verdict yet" in scheduler.log.read_text(), "a bind has no answer")
        assert len(target.history.bound()) < GANGS * SIZE, "the API server was killed too late: all pods are bound"
        restarted = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        target.ends_with_the_cluster(restarted)
        await target.bound(GANGS * SIZE)
        await target.assert_settled()


@pytest.mark.deadline(200)
async def test_all_gangs_are_bound_although_etcd_pauses_for_five_seconds(target: TargetCluster) -> None:
    async with target.scenario(nodes=10, cpu="64"):
        await _load(target)
        etcd = _process(target, "etcd")
        target.start()
        await target.history.until(lambda: len(target.history.bound()) >= 30, "binds are under way")
        os.kill(etcd.pid, signal.SIGSTOP)
        paused = time.monotonic()
        try:
            await asyncio.sleep(5.0)
        finally:
            os.kill(etcd.pid, signal.SIGCONT)
        assert time.monotonic() - paused >= 5.0
        await target.bound(GANGS * SIZE)
        await target.assert_settled()


@pytest.mark.deadline(200)
async def test_all_gangs_are_bound_although_etcd_has_no_space_for_a_while(target: TargetCluster) -> None:
    alarm = {"memberID": "0", "alarm": "NOSPACE"}
    async with target.scenario(nodes=10, cpu="64"):
        await _load(target)
        scheduler = target.start()
        await target.history.until(lambda: len(target.history.bound()) >= 30, "binds are under way")
        await _etcd(target, "maintenance/alarm", {**alarm, "action": "ACTIVATE"})
        try:
            await target.history.until(lambda: "space exceeded" in scheduler.log.read_text(), "a bind is refused")
            assert len(target.history.bound()) < GANGS * SIZE, "the disk was full too late: all pods are bound"
            scheduler.page("/healthz")
        finally:
            await _etcd(target, "maintenance/alarm", {**alarm, "action": "DEACTIVATE"})
        await target.bound(GANGS * SIZE)
        await target.assert_settled()
