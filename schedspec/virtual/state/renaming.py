"""Replace names so that every comparison of two names has the same result.

Of two names, the smaller one has the smaller replacement; equal names have equal replacements. The core breaks ties by
name, so that any other renaming would change decisions. Names with a meaning in the code are unchanged.

1. A first pass over the state with `StateNames` collects all names.
2. `ReplacedNames` sorts and numbers them. A number at the end of a pod's name is kept: it orders a gang's pods.
"""

from __future__ import annotations

import bisect
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import msgspec

from ...scheduler.model.input_files import read_bytes
from ...scheduler.model.printable import one_line
from ...scheduler.model.task import index_of
from .state import StateError

UIDS = "uids"
KNOWN = ("default", "root", "system-cluster-critical", "system-node-critical")
KNOWN_NAMESPACES = ("default", "kube-system")
_DOMAINS = ("kubernetes.io", "k8s.io", "volcano.sh", "kubeflow.org", "schedspec.dev", "nvidia.com")
_HOSTNAME = "kubernetes.io/hostname"
_PLAIN = frozenset({"kubernetes.io/os", "kubernetes.io/arch", "volcano.sh/preemptable"})
"""Labels whose values are constants of an API."""
_NUMBER = re.compile(r"-?\d{1,18}", re.ASCII)
_BOOLEANS = frozenset({"", "true", "false"})
Scope = str
"""A scope in which names are compared: `/` for cluster-scoped objects, `ns/` for those of a namespace, `keys`, …."""


class NameRow(msgspec.Struct, omit_defaults=True):
    """A line of a table of names: a name and what replaces it, or the key of all uids."""

    scope: str
    name: str = ""
    new: str = ""
    key: str = ""


class StateNames:
    """The replacements of names. This class only collects the names and returns them unchanged."""

    def __init__(self, domains: Collection[str] = ()) -> None:
        self.found: dict[Scope, set[str]] = defaultdict(set)
        self.domains = domains
        """The domains of the cluster's own resources."""

    def of(self, scope: Scope, name: str) -> str:
        """Return the replacement of a name; empty for an empty name."""
        if name:
            self.found[scope].add(name)
        return name

    def cluster(self, name: str) -> str:
        """Return the replacement of a node, queue, priority class or volume."""
        return self.of("/", name)

    def namespace(self, name: str) -> str:
        return self.of("namespaces", name)

    def within(self, namespace: str, name: str) -> str:
        """Return the replacement of an object of a namespace."""
        return self.of(f"{namespace}/", name)

    def key(self, key: str) -> str:
        """Return the replacement of a label's key."""
        domain = key.rpartition("/")[0]
        if not key or domain.endswith(_DOMAINS) or self.is_of_card(key):
            return key
        return self.of("keys", key)

    def is_of_card(self, key: str) -> bool:
        """Whether a label describes cards: its domain is that of a resource (`nvidia.com/gpu.product`)."""
        return key.rpartition("/")[0] in self.domains

    def value(self, key: str, value: str) -> str:
        """Return the replacement of a label's value. Numbers and booleans are unchanged: selectors compare them."""
        if key == _HOSTNAME:
            return self.cluster(value)
        if key in _PLAIN or value in _BOOLEANS or _NUMBER.fullmatch(value) or self.is_of_card(key):
            return value
        return "__".join(self.of("values", part) for part in value.split("__"))


class ReplacedNames(StateNames):
    """The replacements of the names that were collected."""

    def __init__(self, collected: StateNames) -> None:
        super().__init__(collected.domains)
        self._new: dict[Scope, dict[str, str]] = {}
        number = 0
        for scope, names in sorted(collected.found.items()):
            self._new[scope] = dict(_replacements(scope, names, number))
            number += len(names)

    def rows(self) -> Iterator[NameRow]:
        """Yield what is replaced. No two names have the same replacement, so that a result can be read back."""
        for scope, known in self._new.items():
            yield from (NameRow(scope, name, new) for name, new in known.items() if name != new and scope != UIDS)

    def of(self, scope: Scope, name: str) -> str:
        return self._new[scope][name] if name else ""


def _replacements(scope: Scope, names: set[str], first: int) -> Iterable[tuple[str, str]]:
    known: tuple[str, ...] = {"/": KNOWN, "namespaces": KNOWN_NAMESPACES}.get(scope, ())
    end = "/" if scope == "namespaces" else ""  # keys are compared as `namespace/name`
    for number, name in enumerate(sorted(names, key=lambda text: text + end), first):
        if name in known:
            yield name, name
            continue
        before = bisect.bisect([name + end for name in known], name + end)
        index = index_of(name)
        tail = f"-{index}" if index >= 0 and scope.endswith("/") and scope != "/" else ""
        tag = ":r" if scope == "images" else ""
        yield name, f"{known[before - 1] if before else 'a'}{number:07}{tail}{tag}"


def read_names(path: Path) -> Iterator[NameRow]:
    """Yield the rows of a table of names. Raises OSError, StateError."""
    for number, line in enumerate(read_bytes(path, pipes=True).splitlines(), 1):
        try:
            yield msgspec.json.decode(line, type=NameRow)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            problem = f"is no line of a table of names: {one_line(str(error))}"
            raise StateError(f"{path}:{number}", problem, "name another file with --names") from error


_TOKEN = re.compile(rf"(?<![\w.-])((?:a|{'|'.join({*KNOWN, *KNOWN_NAMESPACES})})\d{{7,}})(-\d+)?(:r)?")


def with_names(text: str, rows: Iterable[NameRow]) -> str:
    """Return a text with the names that were replaced in what it was computed from."""
    names = {row.new: row.name for row in rows if row.new}

    def named(found: re.Match[str]) -> str:
        whole, (head, index, tag) = found[0], found.groups("")
        return names.get(whole) or (names[head] + index + tag if head in names else whole)

    return _TOKEN.sub(named, text)
