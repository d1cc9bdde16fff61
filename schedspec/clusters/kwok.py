"""Run KWOK as a process on this machine, beside a cluster with real nodes. KWOK plays annotated nodes only.

    kwok = Kwok(kubeconfig, home, progress=progress)   # home: the cluster's own directory
    kwok.start()                                       # returns when KWOK answers; raises ClusterError
    ...
    kwok.stop()                                        # the second call does nothing

KWOK plays a node with the annotation `kwok.x-k8s.io/node: fake`; its pods follow kind-config/stages/. KWOK renews the
node's status every 12 s, because the controller manager of a cluster of kubelets treats the node as dead after 40 s.
The node should not have the label `kubernetes.io/os`, so that the cluster's DaemonSets do not use it. On Linux the
kernel kills KWOK when this process dies. `cleanup.destroy` of the record with the same `home` always ends KWOK.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from . import probe
from .kwok_config import GO, kwok_config
from .paths import kind_config
from .programs import binaries
from .protocol import BootError, PortTakenError, Progress
from .registry import free_ports
from .subprocess_run import dies_with_us

NODE_ANNOTATION = "kwok.x-k8s.io/node"
NODE_ANNOTATION_VALUE = "fake"

_START_SECONDS = 20.0
_ATTEMPTS = 3


def configuration() -> str:
    """Return KWOK's configuration for a cluster with kubelets."""
    stages = kind_config() / "stages"
    return kwok_config(stages, stages / "beside-kubelets")


class Kwok:
    """One KWOK process with one owner. `keep` lets the process outlive this one, as a kept cluster does."""

    def __init__(
        self,
        kubeconfig: Path,
        home: Path,
        *,
        progress: Progress,
        folder: Path | None = None,
        keep: bool = False,
        label: str = "",
    ) -> None:
        """Prepare a process; `start` starts it. With `label`, nodes without that label are never played."""
        self._kubeconfig = kubeconfig
        self._home = home
        self._progress = progress
        self._folder = folder
        self._keep = keep
        self._label = label
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self._home / "kwok.log"

    def start(self) -> None:
        """Return when KWOK answers.

        Raises:
            ClusterError: KWOK could not be provided or started.
        """
        program = binaries.provide(["kwok"], folder=self._folder, progress=self._progress)["kwok"].path
        config = self._home / "kwok.yaml"
        config.write_text(configuration(), "utf-8")
        for attempt in range(1, _ATTEMPTS + 1):
            (port,) = free_ports(1)
            try:
                self._start_at(port, self._command(program, config, port))
                return
            except PortTakenError as error:
                if attempt == _ATTEMPTS:
                    raise
                self._progress(f"kwok: {error.what}; trying another port")

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()

    def _command(self, program: Path, config: Path, port: int) -> list[str]:
        return [
            str(program),
            f"--kubeconfig={self._kubeconfig}",
            f"--config={config}",
            "--manage-all-nodes=false",
            f"--manage-nodes-with-annotation-selector={NODE_ANNOTATION}={NODE_ANNOTATION_VALUE}",
            *([f"--manage-nodes-with-label-selector={self._label}"] if self._label else []),
            f"--server-address=127.0.0.1:{port}",
            "--node-ip=127.0.0.1",
            f"--node-port={port}",
        ]

    def _start_at(self, port: int, command: Sequence[str]) -> None:
        with self.log.open("wb") as log:
            self._process = process = subprocess.Popen(
                [*([] if self._keep else dies_with_us()), *command],
                env=os.environ | GO,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        url = f"http://127.0.0.1:{port}/healthz"
        try:
            in_time = probe.wait(lambda: process.poll() is not None or probe.get(url) is not None, _START_SECONDS)
            if in_time and process.poll() is None:
                if self._keep:
                    process.returncode = 0  # Python would warn about a child that outlives this process
                return
            raise self._boot_error(port, ended=process.poll() is not None)
        except BaseException:
            self.stop()
            raise

    def _boot_error(self, port: int, *, ended: bool) -> BootError:
        output = self.log.read_text("utf-8", "replace")
        if "address already in use" in output:
            return PortTakenError(f"port {port} was taken by another process", f"127.0.0.1:{port}", "run again")
        what = "kwok ended" if ended else f"kwok did not answer within {_START_SECONDS:.0f} s"
        last = "\n".join(output.splitlines()[-5:])
        return BootError(f"{what}:\n{last}", str(self.log), f"check whether {self._kubeconfig} reaches its cluster")
