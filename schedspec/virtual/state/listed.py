"""Read objects that kubectl printed: Lists and single objects, as JSON or YAML."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ...scheduler.controllers.runtime.objects import JOBS, VolcanoJob
from ...scheduler.inputs import PolicyLoaded
from ...scheduler.lint.objects import ManifestError, documents
from ...scheduler.model import objects, resources
from ...scheduler.model.cluster import Cluster
from ...scheduler.model.demand import requests_of
from ...scheduler.model.input_files import read_bytes
from ...scheduler.model.state_kinds import STATE_KINDS
from ...scheduler.model.times import seconds
from . import kueue
from .known_jobs import add_known_jobs
from .state import CutStateError, State, StateError, TooLargeError

T = TypeVar("T")
MAX_BYTES = 4 << 30
"""Maximum size of all files: more than ten times the JSON of 5,000 nodes and 50,000 pods."""
MAX_UNPACKED, MAX_RATIO = 16 << 20, 100
"""A compressed list may unpack to this many bytes, and to this many times its own size: usual lists have 10 to 40."""
_VOLCANO = "scheduling.volcano.sh"
_GROUPS = {
    "CSINode": "storage.k8s.io",
    "HyperNode": "topology.volcano.sh",
    "PodDisruptionBudget": "policy",
    "PodGroup": _VOLCANO,
    "PriorityClass": "scheduling.k8s.io",
    "Queue": _VOLCANO,
}
"""Kind of a state → its API group, for kinds outside of the core group."""
REMEDY = (
    "write it with kubectl get nodes,pods,podgroups,queues,jobs.batch.volcano.sh,priorityclasses,poddisruptionbudgets "
    "-A -o json"
)


class _Head(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    metadata: dict[str, Any] = {}
    items: list[msgspec.Raw] | None = None
    data: dict[str, str] | None = None


_decode_head = msgspec.json.Decoder(_Head).decode
_decode_job = msgspec.json.Decoder(VolcanoJob).decode
_decode_served = msgspec.json.Decoder(kueue.ServedObject).decode
_decoders = {kind: msgspec.json.Decoder(known.struct).decode for kind, known in STATE_KINDS.items()}


def read_lists(paths: list[Path], source: str) -> State:
    state, jobs = State(source, is_exact=False), list[VolcanoJob]()
    size = sum(path.stat().st_size for path in paths)
    for path in paths:
        if size > MAX_BYTES:
            raise TooLargeError(source, f"has {size} bytes; the maximum is {MAX_BYTES}", REMEDY)
        content = _content(path)
        try:
            if path.suffix in (".yaml", ".yml"):
                _add_yaml(state, jobs, content, path)
            else:
                _add_json(state, jobs, content, path)
        except RecursionError as error:
            raise StateError(str(path), "is nested too deeply", REMEDY) from error
    state.taken = _newest(state)
    add_known_jobs(state, jobs)
    state.notes.append("a list contains no time of its own: the state's time is that of its newest object")
    return state


def _content(path: Path) -> bytes:
    try:
        content = read_bytes(path)
        if content[:2] == b"\x1f\x8b":
            most = min(MAX_BYTES, MAX_UNPACKED + MAX_RATIO * len(content))
            with gzip.open(path) as file:
                content = file.read(most + 1)
            if len(content) > most:
                raise TooLargeError(str(path), f"unpacks to more than {most} bytes", REMEDY)
    except EOFError as error:
        raise CutStateError(str(path), "is cut off", "copy or write it again") from error
    except OSError as error:
        raise StateError(str(path), f"cannot be read: {error.strerror or error}", "name a readable file") from error
    return content


def _add_yaml(state: State, jobs: list[VolcanoJob], content: bytes, path: Path) -> None:
    try:
        for line, item, _ in documents(content.decode()):
            place = f"{path}:{line}"
            _add(state, jobs, _as_json(item, place), place)
    except (ManifestError, UnicodeDecodeError) as error:
        place = f"{path}:{error.line}" if isinstance(error, ManifestError) else str(path)
        raise StateError(place, str(error), REMEDY) from error


def _as_json(item: dict[str, Any], place: str) -> bytes:
    try:
        return msgspec.json.encode(item)
    except TypeError as error:
        raise StateError(place, f"is not an object: {error}", REMEDY) from error


def _add_json(state: State, jobs: list[VolcanoJob], content: bytes, path: Path) -> None:
    if not content.strip():
        raise StateError(str(path), "is empty", REMEDY)
    try:
        head = _decode_head(content)
    except msgspec.ValidationError as error:
        raise StateError(str(path), f"is not a list of objects: {error}", REMEDY) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if "truncated" in str(error):
            raise CutStateError(str(path), "is cut off: its JSON has no end", "copy or write it again") from error
        raise StateError(str(path), f"is not JSON: {error}", REMEDY) from error
    if head.items is None:
        _add(state, jobs, content, str(path))
        return
    if head.metadata.get("continue"):
        raise CutStateError(str(path), "is one page of a longer list", "list without a limit")
    for number, raw in enumerate(head.items):
        _add(state, jobs, raw, f"{path}, item {number}")


def _add(state: State, jobs: list[VolcanoJob], raw: msgspec.Raw | bytes, place: str) -> None:
    try:
        head = _decode_head(raw)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StateError(place, f"is not an object: {error}", REMEDY) from error
    group = head.api_version.rpartition("/")[0]
    if head.kind == "ConfigMap" and any(name.endswith(".conf") for name in head.data or ()):
        state.policy = PolicyLoaded(place, bytes(raw).decode(errors="replace"))
    elif (group == kueue.GROUP and head.kind in kueue.PLURALS) or (
        head.kind == "ConfigMap" and kueue.CONFIGURATION in (head.data or {})
    ):
        kueue.put(state, head.kind, head.api_version, _decoded(_decode_served, raw, head, place))
    elif head.kind in STATE_KINDS and group == _GROUPS.get(head.kind, ""):
        item: Any = _decoded(_decoders[head.kind], raw, head, place)
        item.metadata.annotations = objects.read_annotations(item.metadata.annotations)
        state.put(head.kind, item)
    elif (group, head.kind) == (JOBS.group, JOBS.kind):
        jobs.append(_decoded(_decode_job, raw, head, place))
    else:
        state.left_out[f"{head.kind}.{group}" if group else head.kind or "objects without a kind"] += 1


def _decoded(decode: Callable[[msgspec.Raw | bytes], T], raw: msgspec.Raw | bytes, head: _Head, place: str) -> T:
    try:
        item = decode(raw)
        if isinstance(item, objects.Node):
            resources.parse(item.status.allocatable or item.status.capacity)
        elif isinstance(item, objects.Pod):
            requests_of(item)
        elif head.kind in STATE_KINDS and isinstance(item, STATE_KINDS[head.kind].struct):
            STATE_KINDS[head.kind].set(Cluster(), item)  # reads all of its amounts
        return item
    except (msgspec.ValidationError, ValueError) as error:
        name = head.metadata.get("name", "without a name")
        raise StateError(place, f"{head.kind} {name}: {error}", "correct or remove this object") from error


def _newest(state: State) -> float:
    moments = [item.metadata.creation_timestamp for found in state.objects.values() for item in found.values()]
    moments += [pod.status.start_time for pod in state.objects["Pod"].values()]
    for obj in (obj for found in state.others.values() for obj in found.values()):
        conditions = (obj.get("status") or {}).get("conditions") or ()
        moments += [obj["metadata"].get("creationTimestamp"), *(each.get("lastTransitionTime") for each in conditions)]
    return seconds(max(filter(None, moments), default=None))
