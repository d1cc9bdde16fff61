"""Registry of the clusters on this machine: one small file for each cluster.

The file is written before the cluster's first process starts and removed last. It names the owner, which may be dead,
and everything that has to be removed. Clean-up needs no other state.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import time
from collections.abc import Collection
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import psutil
from filelock import FileLock

from .paths import state_root
from .protocol import BootError
from .subprocess_run import runs

_PORTS = range(20000, 32000)
"""Below the ports that kernels assign to outgoing connections: 32768 and up on Linux, 49152 and up on macOS."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A process. Its start time distinguishes it from a later process with the same id."""

    pid: int
    created: float

    @classmethod
    def me(cls) -> Owner:
        return cls(os.getpid(), psutil.Process().create_time())

    @classmethod
    def session(cls) -> Owner:
        """Return the leader of this process's session: the terminal's shell, or the job of a server."""
        try:
            leader = os.getsid(0)
            return cls(leader, psutil.Process(leader).create_time())
        except psutil.Error:  # the leader has ended, or is outside of this container
            return cls.me()

    @property
    def alive(self) -> bool:
        try:
            return abs(psutil.Process(self.pid).create_time() - self.created) < 1 and runs(self.pid)
        except psutil.NoSuchProcess:
            return False


@dataclass(frozen=True, slots=True)
class ClusterRecord:
    """One cluster on this machine."""

    name: str
    kind: str
    """Kind of the cluster: `embedded` or `kind`."""
    owner: Owner
    keep: bool
    """True if the cluster outlives its owner."""
    home: Path
    """Directory of the cluster's files; no other files are in it."""
    kubeconfig: Path
    context: str
    ports: tuple[int, ...] = ()
    made: float = field(default_factory=time.time)
    session: Owner = field(default_factory=Owner.session)
    """The session that made a kept cluster, or took it over from one that has ended."""

    @property
    def of_another_session(self) -> bool:
        """Whether somebody else on this machine works with the cluster."""
        return self.session.alive and self.session != Owner.session()

    def kept(self) -> ClusterRecord:
        return replace(self, keep=True)

    @property
    def abandoned(self) -> bool:
        """Whether the owner is dead and the cluster is not to be kept."""
        return not self.keep and not self.owner.alive


class Registry:
    """The records of this user on this machine. Safe for many processes at once."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = (root or state_root()) / "clusters"
        self.root.mkdir(parents=True, exist_ok=True)

    def records(self) -> list[ClusterRecord]:
        """Return all records, oldest first. Unreadable files belong to another version and are skipped."""
        found = (_load(path) for path in self.root.glob("*.json"))
        return sorted((record for record in found if record), key=lambda record: record.made)

    def find(self, name: str) -> ClusterRecord | None:
        return _load(self._path(name))

    def add(self, record: ClusterRecord, *, ports: int = 0) -> ClusterRecord:
        """Write the record, with `ports` ports that no other record has and on which no process listens.

        Ports are chosen and written under a lock, so that two concurrent runs do not choose the same ports.
        """
        with FileLock(self.root / "records.lock"):
            taken = {port for other in self.records() for port in other.ports}
            record = replace(record, ports=free_ports(ports, taken))
            self._write(record)
        return record

    def update(self, record: ClusterRecord) -> None:
        self._write(record)

    def remove(self, record: ClusterRecord) -> None:
        """Remove the record and the files of a cluster whose processes have ended."""
        shutil.rmtree(record.home, ignore_errors=True)
        self._path(record.name).unlink(missing_ok=True)

    def lock(self, name: str) -> FileLock:
        """Return the lock of a reusable cluster, which has one user at a time."""
        return FileLock(self.root / f"{name}.lock")

    def _path(self, name: str) -> Path:
        return self.root / f"{name}.json"

    def _write(self, record: ClusterRecord) -> None:
        plain = asdict(record) | {"home": str(record.home), "kubeconfig": str(record.kubeconfig)}
        path = self._path(record.name)
        new = path.with_suffix(f".{os.getpid()}.new")
        new.write_text(json.dumps(plain, indent=1) + "\n", "utf-8")
        new.replace(path)


def _load(path: Path) -> ClusterRecord | None:
    try:
        plain = json.loads(path.read_text("utf-8"))
        plain["owner"] = Owner(**plain["owner"])
        plain["session"] = Owner(**plain["session"])
        plain["home"], plain["kubeconfig"] = Path(plain["home"]), Path(plain["kubeconfig"])
        plain["ports"] = tuple(plain["ports"])
        return ClusterRecord(**plain)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def free_ports(count: int, taken: Collection[int] = ()) -> tuple[int, ...]:
    """Return ports on which no process listens now, none of them in `taken`.

    Raises:
        BootError: fewer than `count` ports are free.
    """
    chosen: list[int] = []
    for port in random.sample(_PORTS, len(_PORTS)):
        if len(chosen) == count:
            break
        if port not in taken and _free(port):
            chosen.append(port)
    if len(chosen) < count:
        raise BootError(
            f"fewer than {count} free ports",
            f"127.0.0.1:{_PORTS.start}-{_PORTS.stop}",
            "end the processes that listen there (`python -m schedspec list` shows our own)",
        )
    return tuple(chosen)


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
