"""A registry of images on this machine, which serves one image and can be made to fail."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from schedspec.clusters.programs.pinned import target

BASIC = base64.b64encode(b"reader:secret").decode()
"""The login that a registry accepts by default."""


def layer(files: Mapping[str, bytes], links: Mapping[str, str] | None = None) -> bytes:
    """Return a packed layer with these files and symbolic links."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
        for name, to in (links or {}).items():
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, to
            tar.addfile(link)
    return gzip.compress(raw.getvalue(), mtime=0)


@dataclass
class FakeRegistry:
    """A registry on this machine that serves one image, and what it asks and spoils."""

    layers: list[bytes]
    tag: str = "v1.2.3"
    challenge: str = ""
    """`Basic` or `Bearer`; empty for none."""
    accepts: str = f"Basic {BASIC}"
    spoiled: str = ""
    """The fault: `digest`, `manifest`, `cut`, `missing`, `platform`, `text` or `more`."""
    address: str = ""
    asked: list[str] = field(default_factory=list)

    def answer(self, path: str, authorization: str) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body for a path."""
        self.asked.append(path)
        if path.startswith("/token"):
            accepted = authorization == self.accepts
            return (200, {}, json.dumps({"token": "t0k3n"}).encode()) if accepted else (401, {}, b"")
        expected = "Bearer t0k3n" if self.challenge == "Bearer" else self.accepts
        if self.challenge and authorization != expected:
            realm = f'realm="http://{self.address}/token",service="here",scope="pull"'
            return 401, {"WWW-Authenticate": f"{self.challenge} {realm}"}, b""
        blobs = {f"sha256:{hashlib.sha256(it).hexdigest()}": it for it in self.layers}
        name = path.rpartition("/")[2]
        if "/blobs/" in path:
            body = blobs[name]
            return 200, {}, body[:-1] + b"!" if self.spoiled == "digest" else body
        manifest = json.dumps({"layers": [{"digest": key, "size": len(it)} for key, it in blobs.items()]}).encode()
        digest = f"sha256:{hashlib.sha256(manifest).hexdigest()}"
        if name == digest:
            return 200, {}, manifest + (b" " if self.spoiled == "manifest" else b"")
        if name != self.tag or self.spoiled == "missing":
            return 404, {}, b"{}"
        if self.spoiled == "text":
            return 200, {}, b"<html>a portal</html>"
        system, architecture = target()
        platform = {"os": "plan9" if self.spoiled == "platform" else system, "architecture": architecture}
        return 200, {}, json.dumps({"manifests": [{"platform": platform, "digest": digest}]}).encode()


@contextmanager
def serving(registry: FakeRegistry) -> Iterator[FakeRegistry]:
    """Serve the registry at an address of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, headers, body = registry.answer(self.path, self.headers.get("Authorization", ""))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            is_cut = "/blobs/" in self.path and registry.spoiled == "cut"
            self.wfile.write(body[: len(body) // 2] if is_cut else body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        registry.address = f"127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()
