"""The kubectl commands that a Kind cluster needs before its first client connects."""

from __future__ import annotations

import json
import time
from pathlib import Path

from . import subprocess_run
from .protocol import BootError

_ANSWER_SECONDS = 15.0


class Kubectl:
    def __init__(self, program: Path, kubeconfig: Path) -> None:
        self._start = [str(program), "--kubeconfig", str(kubeconfig)]

    def ready(self) -> bool:
        return subprocess_run.run([*self._start, "get", "--raw", "/readyz"], deadline=_ANSWER_SECONDS).status == 0

    def version(self) -> str:
        """Return the version of the API server, for instance `v1.36.3`."""
        return str(json.loads(self._call("get", "--raw", "/version"))["gitVersion"])

    def wait_ready(self, seconds: float) -> None:
        """Return when every node is Ready and the namespace `default` accepts pods.

        Raises:
            BootError: they were not ready within `seconds`.
        """
        end = time.monotonic() + seconds
        for condition, what in (("condition=Ready", ("nodes", "--all")), ("create", ("serviceaccount/default",))):
            left = max(1, int(end - time.monotonic()))
            self._call("wait", f"--for={condition}", *what, f"--timeout={left}s", deadline=left + 5)

    def labels_of_nodes(self, label: str) -> dict[str, str]:
        """Return the value of a label by node, for the nodes that have the label."""
        nodes = json.loads(self._call("get", "nodes", "--selector", label, "--output", "json"))["items"]
        return {node["metadata"]["name"]: node["metadata"]["labels"][label] for node in nodes}

    def advertise(self, node: str, resource: str, amount: int) -> None:
        """Advertise an amount of a resource on a node, as a device plugin would. The kubelet keeps it."""
        has = {resource: str(amount)}
        patch = json.dumps({"status": {"capacity": has, "allocatable": has}})
        self._call("patch", "node", node, "--subresource=status", "--type=merge", "--patch", patch)

    def _call(self, *words: str, deadline: float = _ANSWER_SECONDS) -> str:
        done = subprocess_run.run([*self._start, *words], deadline=deadline)
        if done.status != 0:
            how = "did not end in time" if done.status is None else f"failed (exit status {done.status})"
            raise BootError(
                f"`kubectl {words[0]}` {how}:\n{done.last_lines}", " ".join([*self._start, *words]), "run again"
            )
        return done.output
