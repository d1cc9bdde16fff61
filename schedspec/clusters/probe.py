"""Check whether a control plane on this machine answers. Standard library only: `up` must not wait for imports."""

from __future__ import annotations

import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

_PAUSE_SECONDS = 0.05


class ApiProbe:
    """An API server, with the administrator's certificate as files."""

    def __init__(self, url: str, pki: Path) -> None:
        self._url = url
        self._pki = pki
        self._tls: ssl.SSLContext | None = None

    def ready(self) -> bool:
        return self._get("/readyz") is not None

    def version(self) -> str:
        """Return the server's version, for instance `v1.36.3`; empty if the server does not answer."""
        output = self._get("/version")
        return str(json.loads(output)["gitVersion"]) if output else ""

    def has(self, path: str) -> bool:
        return self._get(path) is not None

    def _get(self, path: str) -> bytes | None:
        try:
            if self._tls is None:
                tls = ssl.create_default_context(cafile=self._pki / "ca.crt")
                tls.load_cert_chain(self._pki / "admin.crt", self._pki / "admin.key")
                self._tls = tls
            return get(self._url + path, self._tls)
        except OSError:
            return None


def get(url: str, tls: ssl.SSLContext | None = None) -> bytes | None:
    """Return the body of a response with status 200, else None."""
    try:
        with urllib.request.urlopen(url, timeout=2, context=tls) as answer:  # noqa: S310 - our own processes
            body: bytes = answer.read()
            return body
    except (OSError, ValueError):
        return None


def wait(condition: Callable[[], bool], seconds: float) -> bool:
    """Check the condition every 50 ms. Return whether it held within `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(_PAUSE_SECONDS)
    return True
