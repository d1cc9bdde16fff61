"""`scheduler dump`: read a cluster's state and write it to a file.

1. List every kind that the scheduler watches, and read the scheduler's policy if a ConfigMap contains it.
2. Reduce each object to the fields that the scheduler reads: no environments and images of pods, for example.
3. Write a recording of one checkpoint (`scheduler.recording`), which all readers of recordings can read.
"""

from __future__ import annotations

import asyncio
import gzip
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO, TypeVar

import msgspec

from ...scheduler import kube
from ...scheduler.controllers.runtime.objects import JOBS
from ...scheduler.inputs import Input, PolicyLoaded, Started, Taken, write_line
from ...scheduler.model.objects import Object, ObjectMeta, read_annotations
from ...scheduler.model.times import timestamp
from ...scheduler.policy.loader import PolicyError, load_policy, read_policy
from ...scheduler.recording.segments import VERSION
from . import kueue
from .known_jobs import add_known_jobs
from .redaction import redact
from .renaming import NameRow
from .state import State, StateError

T = TypeVar("T", bound=msgspec.Struct)
_NEEDED: tuple[kube.Resource[Any], ...] = (kube.NODES, kube.PODS, kube.QUEUES, kube.PODGROUPS)


class ConfigMap(Object):
    """A ConfigMap, which may have a policy."""

    metadata: ObjectMeta
    data: dict[str, str] | None = None


CONFIGS = kube.Resource("", "v1", "configmaps", "ConfigMap", ConfigMap)
POLICIES = (("schedspec", "schedspec-policy"), ("volcano-system", "volcano-scheduler-configmap"))
"""Namespace and name of the ConfigMaps with a policy: ours as `deploy/` installs it, and Volcano's."""


def main(given: SimpleNamespace) -> int:
    """Run the command.

    Returns:
        0 if the file was written, 1 if the cluster cannot be read, 2 on bad input.
    """
    if given.names is not None and not given.redact:
        sys.stderr.write("--names: nothing reads it without --redact\n")
        return 2
    try:
        policy = None if given.policy is None else _policy_of(given.policy)
        state = asyncio.run(take(given.kubeconfig, given.context, given.scheduler_names, policy))
        rows: list[NameRow] = []
        state = redact(state, rows.append) if given.redact else state
        write_state(state, given.out)
        if given.names is not None:
            with _private(given.names, "--names") as file:
                file.writelines(msgspec.json.encode(row) + b"\n" for row in rows)
    except (StateError, PolicyError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except kube.KubeError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(summary(state, given.out))
    return 0


def _policy_of(path: Path) -> PolicyLoaded:
    text = read_policy(path)
    load_policy(text, str(path))
    return PolicyLoaded(str(path), text)


def summary(state: State, out: Path) -> str:
    counts = [f"{len(found)} {kind}" for part in (state.objects, state.others) for kind, found in part.items() if found]
    lines = [
        f"{out}: taken at {timestamp(state.taken)}, sha256 {state.digest[:16]}{', redacted' if state.redacted else ''}",
        f"  {', '.join(counts) or 'no objects'}",
        f"  scheduler {', '.join(state.scheduler_names) or 'of any name'}; "
        + (f"policy from {state.policy.source}" if state.policy else "no policy found: name one with --policy"),
    ]
    return "\n".join([*lines, *(f"  {note}" for note in state.notes)]) + "\n"


# ---------------------------------------------------------------------------------------------------------- the cluster


async def take(
    kubeconfig: Path | None,
    context: str | None,
    scheduler_names: Iterable[str] = (),
    policy: PolicyLoaded | None = None,
    *,
    agent: str = "schedspec-dump",
) -> State:
    """Read the state of the cluster that kubectl would use. Raises as `take_state`."""
    connection = kube.connect_as_kubectl(kubeconfig, context)
    http = kube.Http(connection, agent=agent, may_write=lambda: False)
    try:
        return await take_state(kube.Client(http), connection.netloc, scheduler_names, policy)
    finally:
        await http.close()


async def take_state(
    client: kube.Client, source: str, scheduler_names: Iterable[str] = (), policy: PolicyLoaded | None = None
) -> State:
    """Read the state of a cluster; `source` is its name in errors.

    Raises:
        KubeError: the cluster does not answer, or reading it is forbidden.
        StateError: the cluster serves no Queues or no PodGroups.
    """
    state = State(source, time.time())
    await _take_kueue(client, state)
    needed = _NEEDED if not state.others else (kube.NODES, kube.PODS)
    for resource in (*_NEEDED, *(other for other in kube.WATCHED if other not in _NEEDED)):
        await _list(client, resource, state, is_needed=resource in needed)
    add_known_jobs(state, await _items(client, JOBS, state) or ())
    state.keep_scheduled(scheduler_names)
    state.policy = policy or await _policy_in(client)
    return state


async def _items(
    client: kube.Client, resource: kube.Resource[T], state: State, *, is_needed: bool = False
) -> Sequence[T] | None:
    """Return the objects of a kind, and note those that cannot be read. None if the cluster does not serve the kind.

    Raises:
        Forbidden: the kind is needed, and listing it is forbidden.
    """
    try:
        listing = await client.list(resource)
    except kube.NotFound:
        return None
    except kube.Forbidden:
        if is_needed:
            raise
        state.notes.append(f"{resource.id} are missing: listing them is forbidden")
        return ()
    state.notes += [f"{resource.id} {item.metadata.key} is left out: {item.error}" for item in listing.malformed]
    return listing.items


async def _list(client: kube.Client, resource: kube.Resource[Any], state: State, *, is_needed: bool) -> None:
    items = await _items(client, resource, state, is_needed=is_needed)
    if items is None and is_needed:
        problem = f"serves no {resource.id}: neither schedspec, Volcano nor Kueue schedules this cluster"
        raise StateError(state.source, problem, "name another cluster with --context")
    for item in items or ():
        item.metadata.annotations = read_annotations(item.metadata.annotations)
        state.put(resource.kind, item)


async def _take_kueue(client: kube.Client, state: State) -> None:
    """Read Kueue's objects and its configuration from a cluster that serves them; else nothing."""
    for kind, (plural, namespaced) in kueue.PLURALS.items():
        for version in kueue.VERSIONS:
            resource = kube.Resource(kueue.GROUP, version, plural, kind, kueue.ServedObject, namespaced)
            items = await _items(client, resource, state)
            if items is not None:
                for item in items:
                    kueue.put(state, kind, resource.api_version, item)
                break
    if state.others:
        config = kube.Resource("", "v1", "configmaps", "ConfigMap", kueue.ServedObject)
        try:
            found = await client.get(config, kueue.CONFIG_NAME, kueue.CONFIG_NAMESPACE)
            kueue.put(state, "ConfigMap", "v1", found)
        except (kube.NotFound, kube.Forbidden):
            name = f"{kueue.CONFIG_NAMESPACE}/{kueue.CONFIG_NAME}"
            state.notes.append(f"no configuration of Kueue ({name}) can be read: its defaults are used")


async def _policy_in(client: kube.Client) -> PolicyLoaded | None:
    for namespace, name in POLICIES:
        try:
            found = await client.get(CONFIGS, name, namespace)
        except (kube.NotFound, kube.Forbidden):
            continue
        if (policy := policy_of(found)) is not None:
            return policy
    return None


def policy_of(config: ConfigMap) -> PolicyLoaded | None:
    for file, text in sorted((config.data or {}).items()):
        if file.endswith((".conf", ".yaml")):
            return PolicyLoaded(f"configmap {config.metadata.key}", text)
    return None


# ------------------------------------------------------------------------------------------------------------- the file


def write_state(state: State, out: Path) -> None:
    """Write a state to a file that only its owner can read. Raises StateError."""
    with _private(out, "--out") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as file:
        for given in _lines(state):
            file.write(write_line(given) + b"\n")


@contextmanager
def _private(out: Path, option: str) -> Iterator[BinaryIO]:
    """Yield a new file that only its owner can read. Raises StateError."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.unlink(missing_ok=True)
        out.touch(mode=0o600)
        with out.open("wb") as file:
            yield file
    except OSError as error:
        raise StateError(
            str(out), f"cannot be written: {error.strerror}", f"name another file with {option}"
        ) from error


def _lines(state: State) -> Iterator[Input]:
    yield Started(VERSION, state.scheduler_names, state.node_selector)
    yield state.policy or PolicyLoaded("", "")
    yield from state.inputs()
    yield from state.noted()
    yield Taken(state.taken, state.redacted, state.notes)
