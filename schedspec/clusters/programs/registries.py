"""Take a program and its definitions out of a release image, from the image's registry, without a Docker engine.

A registry is asked as the OCI distribution specification describes. Every byte is verified: the manifest by the digest
that the registry or the index names, each layer by that of the manifest. Credentials are those of other clients: the
files that `docker login` and `podman login` write, and their helpers. A registry on this machine is asked without TLS.

Why not oras: version 0.2.43 took 131 s and five tries to report a refused connection, has no timeouts, verifies no
digest, reads only ~/.docker/config.json and does not answer the challenge `Basic`.

Files of an image follow from its layers: each covers those below it, and removes from them by whiteouts. Layers are tar
files as in the OCI image specification; gzip is read, and what else this Python's `tarfile` knows.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import posixpath
import shutil
import subprocess
import tarfile
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import requests
import urllib3
from requests.utils import parse_dict_header

from ..subprocess_run import Tick, silent
from .pinned import target

MAXIMUM_BYTES: Final = 2 << 30
"""Maximum bytes of all layers, packed, and of one file in them: release images of schedulers have at most 200 MB."""
_DEFINITION_BYTES: Final = 8 << 20
_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"
_LINKS: Final = 8
Files = dict[str, tuple[Path, tarfile.TarInfo]]
"""Path in an image → the layer that has the file, and the entry there."""


class LayerError(Exception):
    """An image does not have a file, or not as a file; the text continues a sentence that begins with the image."""


def merged(layers: Sequence[Path]) -> Files:
    """Return the files of an image, from its layers, the lowest first."""
    files: Files = {}
    for layer in layers:
        added: Files = {}
        with tarfile.open(layer) as tar:
            for member in tar:
                path = posixpath.normpath(f"/{member.name}")
                folder, name = posixpath.split(path)
                if name == _OPAQUE:
                    _remove(files, folder, itself=False)
                elif name.startswith(_WHITEOUT):
                    _remove(files, posixpath.join(folder, name.removeprefix(_WHITEOUT)))
                else:
                    added[path] = layer, member
        files |= added
    return files


def _remove(files: Files, path: str, *, itself: bool = True) -> None:
    for name in [name for name in files if name.startswith(f"{path}/") or (itself and name == path)]:
        del files[name]


def extract(files: Files, inside: str, to: Path) -> None:
    """Write a file of the image to `to`, links followed. Raises LayerError."""
    path = inside
    for _ in range(_LINKS):
        if path not in files:
            break
        layer, member = files[path]
        if member.issym():
            path = posixpath.normpath(posixpath.join(posixpath.dirname(path), member.linkname))
        elif member.islnk():
            path = posixpath.normpath(f"/{member.linkname}")
        else:
            _copy(layer, member, to)
            return
    raise LayerError(f"has no file {inside}")


def _copy(layer: Path, member: tarfile.TarInfo, to: Path) -> None:
    if member.size > MAXIMUM_BYTES:
        raise LayerError(f"has a larger {member.name} than {MAXIMUM_BYTES >> 30} GiB")
    with tarfile.open(layer) as tar, to.open("wb") as file:
        source = tar.extractfile(member)
        if source is None:
            raise LayerError(f"has no file {member.name}, but another kind of entry")
        shutil.copyfileobj(source, file)


def extract_definitions(files: Files, folder: Path) -> None:
    """Copy every file of the image that is a custom resource definition. Without one, the folder is not made."""
    for path, (layer, member) in files.items():
        if not path.endswith((".yaml", ".yml")) or not member.isfile() or member.size > _DEFINITION_BYTES:
            continue
        draft = folder / posixpath.basename(path)
        folder.mkdir(exist_ok=True)
        _copy(layer, member, draft)
        if b"\nkind: CustomResourceDefinition\n" not in b"\n" + draft.read_bytes():
            draft.unlink()
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


_KINDS: Final = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
"""Media types of an index of platforms, and of the manifest of one."""
_PIECE: Final = 1 << 18
_MANIFEST_BYTES: Final = 4 << 20
_TICK: Final = 5.0


class ImageError(Exception):
    """A program cannot be taken out of an image; the text begins with the image."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The name of an image: `registry.example/team/scheduler:v1`."""

    registry: str
    repository: str
    tag: str

    @classmethod
    def of(cls, image: str, mirror: str = "") -> Reference:
        """Return the parts of a name. A mirror serves the same repositories and tags in the registry's place."""
        registry, _, rest = image.partition("/")
        repository, _, tag = rest.rpartition(":")
        return cls(mirror or registry, repository, tag)

    def __str__(self) -> str:
        return f"{self.registry}/{self.repository}:{self.tag}"

    @property
    def url(self) -> str:
        """The address of the repository."""
        host = {"docker.io": "registry-1.docker.io"}.get(self.registry, self.registry)
        scheme = "http" if host.partition(":")[0] in ("localhost", "127.0.0.1") else "https"
        return f"{scheme}://{host}/v2/{self.repository}"


class Registries:
    """The registries of one run.

    Args:
        mirror: HOST[:PORT] of a registry that serves the same images; by default that of $SCHEDSPEC_REGISTRY.
        answer_seconds: Maximum seconds until a registry begins to answer, and between two pieces of a layer.
        total_seconds: Maximum seconds of a whole image.
    """

    def __init__(self, mirror: str = "", *, answer_seconds: float = 6.0, total_seconds: float = 600.0) -> None:
        self._mirror = mirror or os.environ.get("SCHEDSPEC_REGISTRY", "")
        self._answer_seconds, self._total_seconds = answer_seconds, total_seconds

    def take(self, image: str, inside: str, to: Path, tick: Tick = silent) -> str:
        """Write the file `inside` of an image to `to`, and the definitions in the image into `crds` beside it.

        Returns:
            The image with the digest of its manifest.

        Raises:
            ImageError: the registry does not serve the image, or the image does not have the file.
        """
        reference = Reference.of(image, self._mirror)
        with (
            tempfile.TemporaryDirectory(prefix=".layers-", dir=to.parent) as folder,
            requests.Session() as session,
        ):
            connection = _Connection(reference, session, self._answer_seconds, self._total_seconds, tick)
            try:
                digest, manifest = connection.manifest()
                files = merged(
                    [connection.layer(it, Path(folder) / str(number)) for number, it in enumerate(manifest["layers"])]
                )
                extract(files, inside, to)
                extract_definitions(files, to.with_name("crds"))
            except LayerError as error:
                raise ImageError(f"{reference} {error}") from None
            except (tarfile.TarError, EOFError, zlib.error) as error:
                raise ImageError(f"{reference} has a layer that this Python cannot read ({error})") from None
            except (urllib3.exceptions.HTTPError, subprocess.SubprocessError, OSError) as error:
                raise ImageError(f"{reference}: {_brief(error)}") from None
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise ImageError(f"{reference}: the answer is no image ({_brief(error)})") from None
        to.chmod(0o755)
        return f"{reference}@{digest}"


class _Connection:
    """Requests to the registry of one image. The first challenge is answered once."""

    def __init__(
        self, reference: Reference, session: requests.Session, answer_seconds: float, total_seconds: float, tick: Tick
    ) -> None:
        self._reference, self._answer_seconds, self._tick = reference, answer_seconds, tick
        self._session, self._authorization = session, ""
        self._start = self._ticked = time.monotonic()
        self._deadline = self._start + total_seconds
        self._left = MAXIMUM_BYTES

    def manifest(self) -> tuple[str, dict[str, Any]]:
        """Return the digest and the manifest of the image for this platform."""
        digest, found = self._manifest(self._reference.tag)
        if "manifests" not in found:
            return digest, found
        system, architecture = target()
        wanted = {"os": system, "architecture": architecture}
        for entry in found["manifests"]:
            if wanted.items() <= (entry.get("platform") or {}).items():
                return self._manifest(entry["digest"])
        raise ImageError(f"{self._reference} has no image for {system}/{architecture}")

    def layer(self, layer: dict[str, Any], to: Path) -> Path:
        """Write a layer to a file and return it."""
        self._left -= layer["size"]
        if self._left < 0:
            raise ImageError(f"{self._reference} is larger than {MAXIMUM_BYTES >> 30} GiB")
        digest = hashlib.sha256()
        with self._get(f"blobs/{layer['digest']}") as response, to.open("wb") as file:
            for piece in self._pieces(response, layer["size"]):
                digest.update(piece)
                file.write(piece)
            if file.tell() < layer["size"]:
                raise ImageError(f"{self._reference}: only {file.tell()} of a layer's {layer['size']} bytes arrived")
        self._require(layer["digest"], digest.hexdigest(), "a layer")
        return to

    def _manifest(self, name: str) -> tuple[str, dict[str, Any]]:
        with self._get(f"manifests/{name}") as response:
            content = b"".join(self._pieces(response, _MANIFEST_BYTES))
        named = name if name.startswith("sha256:") else response.headers.get("Docker-Content-Digest", "")
        digest = hashlib.sha256(content).hexdigest()
        self._require(named or f"sha256:{digest}", digest, "the manifest")
        found: dict[str, Any] = json.loads(content)
        return f"sha256:{digest}", found

    def _pieces(self, response: requests.Response, size: int) -> Iterator[bytes]:
        """Yield a body in pieces: at most `size` bytes, before the deadline."""
        while piece := response.raw.read1(_PIECE):  # what has arrived: a slow registry meets the deadline
            size -= len(piece)
            now = time.monotonic()
            if size < 0:
                raise ImageError(f"{self._reference}: the registry sends more than it announces")
            if now > self._deadline:
                raise ImageError(f"{self._reference}: not finished after {now - self._start:.0f} s")
            if now - self._ticked >= _TICK:
                self._ticked = now
                self._tick(now - self._start)
            yield piece

    def _require(self, expected: str, actual: str, what: str) -> None:
        if expected != f"sha256:{actual}":
            raise ImageError(f"{self._reference}: the digest of {what} is sha256:{actual}, not {expected}")

    def _get(self, path: str) -> requests.Response:
        response = self._send(path)
        if response.status_code == HTTPStatus.UNAUTHORIZED:
            response.close()
            self._authorization = self._authorized(response.headers.get("WWW-Authenticate", ""))
            response = self._send(path)
        if response.status_code == HTTPStatus.OK:
            return response
        response.close()
        if response.status_code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise ImageError(f"{self._reference}: {self._refused()}")
        raise ImageError(f"{self._reference}: {response.status_code} {response.reason}")

    def _send(self, path: str) -> requests.Response:
        headers = {"Accept": ", ".join(_KINDS), "Accept-Encoding": "identity"}
        if self._authorization:
            headers["Authorization"] = self._authorization
        url = f"{self._reference.url}/{path}"
        return self._session.get(url, headers=headers, stream=True, timeout=self._answer_seconds)

    def _authorized(self, challenge: str) -> str:
        """Return the header `Authorization` that a challenge asks for."""
        scheme, _, rest = challenge.partition(" ")
        basic = _credentials(self._reference.registry)
        if scheme.lower() == "basic" and basic:
            return f"Basic {basic}"
        asked = parse_dict_header(rest)
        if scheme.lower() != "bearer" or "realm" not in asked:
            raise ImageError(f"{self._reference}: {self._refused()}")
        response = self._session.get(
            str(asked.pop("realm")),
            params=asked,
            headers={"Authorization": f"Basic {basic}"} if basic else {},
            timeout=self._answer_seconds,
        )
        if response.status_code != HTTPStatus.OK:
            raise ImageError(f"{self._reference}: {self._refused()}")
        answer = response.json()
        return f"Bearer {answer.get('token') or answer['access_token']}"

    def _refused(self) -> str:
        has = "refuses the credentials of this user" if _credentials(self._reference.registry) else "asks for a login"
        return f"the registry {has} (docker login {self._reference.registry})"


def _credentials(registry: str) -> str:
    """Return user and password for a registry, in base64 as in the header `Authorization`; empty for none."""
    names = (registry, f"https://{registry}", *(["https://index.docker.io/v1/"] if registry == "docker.io" else []))
    for file in _login_files():
        try:
            found = json.loads(file.read_text("utf-8"))
            for name in names:
                stored = str((found.get("auths") or {}).get(name, {}).get("auth") or "")
                helper = (found.get("credHelpers") or {}).get(name) or found.get("credsStore")
                if answer := stored or (_helped(helper, name) if helper else ""):
                    return answer
        except (OSError, ValueError, AttributeError):
            continue
    return ""


def _login_files() -> list[Path]:
    """Return the files in which clients keep logins, the named ones first."""
    named = os.environ.get("REGISTRY_AUTH_FILE")
    docker = Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker") / "config.json"
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    podman = [Path(runtime) / "containers" / "auth.json"] if runtime else []
    return [*([Path(named)] if named else []), docker, *podman]


def _helped(helper: str, name: str) -> str:
    """Return the credentials that a helper of Docker keeps; empty for none."""
    command = shutil.which(f"docker-credential-{helper}")
    if command is None:
        return ""
    done = subprocess.run([command, "get"], input=name, capture_output=True, text=True, check=False, timeout=30)
    if done.returncode != 0:
        return ""
    answer = json.loads(done.stdout)
    return base64.b64encode(f"{answer['Username']}:{answer['Secret']}".encode()).decode()


def _brief(error: Exception) -> str:
    """Return the reason of an error in one line: the innermost one of a request."""
    while error.args and isinstance(error.args[0], Exception):
        error = error.args[0]
    return " ".join(str(getattr(error, "reason", None) or error).split())
