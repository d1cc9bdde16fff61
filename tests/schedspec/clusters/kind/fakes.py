"""Fakes of docker, kind, kubectl and kwok, as executable scripts."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

DOCKER = """#!/bin/sh
here=$(dirname "$0")
echo "$*" >>"$here/docker.calls"
has() { grep -qxF -- "$2" "$here/$1" 2>/dev/null; }
case "$1 $2" in
"version --format") [ ! -f "$here/silent" ] || { sleep 60; exit 1; }; [ -f "$here/version" ] && cat "$here/version" ;;
"image inspect") has images "$5" ;;
"manifest inspect") has offered "$3" ;;
"pull --quiet") has offered "$3" && echo "$3" >>"$here/images" ;;
"load --quiet") [ -f "$4" ] ;;
"network inspect") has networks "$3" ;;
"network rm") grep -vxF -- "$3" "$here/networks" >"$here/networks.new"; mv "$here/networks.new" "$here/networks" ;;
"ps --all") cat "$here/containers" 2>/dev/null || : ;;
"rm --force") rm -f "$here/containers" ;;
*) echo "unexpected: docker $*" >&2; exit 125 ;;
esac
"""

KIND = """#!/bin/sh
here=$(dirname "$0")
echo "$*" >>"$here/kind.calls"
case "$1 $2" in
"create cluster")
	echo "$KIND_EXPERIMENTAL_DOCKER_NETWORK" >>"$here/networks"
	echo "container-of-$5" >>"$here/containers"
	attempt=$(grep -c '^create' "$here/kind.calls")
	if [ -f "$here/fails.$attempt" ]; then cat "$here/fails.$attempt"; exit 1; fi
	while [ "$1" != --kubeconfig ]; do shift; done
	echo "kind: Config" >"$2"
	;;
"export logs") mkdir -p "$3" && echo "journal of $5" >"$3/journal.log" ;;
"load image-archive") [ -f "$3" ] ;;
*) echo "unexpected: kind $*" >&2; exit 1 ;;
esac
"""

KUBECTL = """#!/bin/sh
here=$(dirname "$0")
shift 2 # --kubeconfig FILE
echo "$*" >>"$here/kubectl.calls"
case "$1 $2" in
"get --raw") echo '{"gitVersion": "v1.36.3"}' ;;
"get nodes") echo '{"items": [{"metadata": {"name": "a-worker", "labels": {"nvidia.com/gpu.count": "8"}}}]}' ;;
esac
"""

KWOK = """#!{python}
import http.server, sys
address = next(word for word in sys.argv if word.startswith("--server-address=")).split("=")[1]
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
    def log_message(self, *words): pass
http.server.HTTPServer((address.split(":")[0], int(address.split(":")[1])), Answer).serve_forever()
"""


class Fakes:
    """A folder with the fake programs, the files that control them, and the log of their calls."""

    def __init__(self, folder: Path, python: str) -> None:
        self.folder = folder
        for name, text in (("docker", DOCKER), ("kind", KIND), ("kubectl", KUBECTL), ("kwok", KWOK)):
            program = folder / name
            program.write_text(text.replace("{python}", python))
            program.chmod(0o755)
        self.engine_answers("20.10.24")

    def engine_answers(self, version: str | None) -> None:
        if version is None:
            (self.folder / "version").unlink()
        else:
            (self.folder / "version").write_text(f"{version}\n")

    def engine_hangs(self) -> None:
        (self.folder / "silent").touch()

    def engine_has(self, *images: str) -> None:
        self._add("images", images)

    def registry_has(self, *images: str) -> None:
        self._add("offered", images)

    def creation_fails(self, attempt: int, output: str) -> None:
        (self.folder / f"fails.{attempt}").write_text(f"{output}\n")

    def calls(self, program: str) -> list[str]:
        file = self.folder / f"{program}.calls"
        return file.read_text().splitlines() if file.exists() else []

    def lines(self, file: str) -> list[str]:
        path = self.folder / file
        return path.read_text().split() if path.exists() else []

    def _add(self, file: str, lines: Iterable[str]) -> None:
        with (self.folder / file).open("a") as opened:
            opened.writelines(f"{line}\n" for line in lines)
