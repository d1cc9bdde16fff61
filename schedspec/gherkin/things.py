"""What scenarios call by name, and what of it is there: at first, and after each sentence.

The one rule: what cannot be known is not refused. After a sentence that does not say what it makes, every name may be
right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from ..api.kinds import BUILT_IN_QUEUES
from .tables import nearest

WORKLOAD = "workload"
POD = "pod"
QUEUE = "queue"
NODE = "node"
PRIORITY_CLASS = "priority class"
MODEL = "model of card"
POLICY = "policy"
"""It exists, and the scheduler takes it."""
POLICY_FILE = "policy file"
"""It exists; whether it is taken is what the scenario is about."""

_AT_FIRST = (
    *((QUEUE, name) for name in BUILT_IN_QUEUES),
    (PRIORITY_CLASS, "system-cluster-critical"),
    (PRIORITY_CLASS, "system-node-critical"),
)


@dataclass(frozen=True)
class RunFacts:
    """What is known of a run before any scenario: what its policies are, and whether its templates are ours."""

    policy: Callable[[str, bool], str] = lambda name, lints: ""  # noqa: ARG005 - nothing is known
    """What is wrong with the policy of that name, with or without what lint says; empty where it is fine."""
    own_templates: bool = False
    """A project's own templates may make more objects than their rows name: `train-0` counts as made with `train`."""
    of_others: frozenset[str] = frozenset()
    """Kinds of which the cluster may have things that scenarios use and no sentence makes."""
    checks_names: bool = True


@dataclass
class Known:
    """The things that are there at some point of a scenario."""

    facts: RunFacts
    _things: dict[str, list[str]] = field(default_factory=dict)
    """Kind → names, in the order in which they came."""
    _open: set[str] = field(default_factory=set)
    """Kinds of which there may be others, which no sentence names."""
    _anything: bool = False

    def __post_init__(self) -> None:
        self._anything = not self.facts.checks_names
        self._open |= self.facts.of_others
        self.add(_AT_FIRST)

    def add(self, things: Iterable[tuple[str, str]]) -> None:
        """These are there now; of a kind with the name `*`, anything may be."""
        for kind, name in things:
            if name == "*":
                self._open.add(kind)
            self._things.setdefault(kind, []).append(name)

    def add_anything(self) -> None:
        """Somebody made something, and does not say what."""
        self._anything = True

    def has(self, kind: str) -> bool:
        """Whether there is, or may be, a thing of that kind."""
        return self._anything or bool(self._things.get(kind))

    def problem(self, kinds: str, name: str) -> str:
        """What is wrong with calling something so; empty where nothing is."""
        if kinds in (POLICY, POLICY_FILE):
            return self.facts.policy(name, kinds == POLICY)
        wanted = kinds.split("|")
        if self._anything or any(self._is_there(kind, name) for kind in wanted):
            return ""
        there = list(dict.fromkeys(it for kind in wanted for it in self._things.get(kind, ())))
        told = ", ".join(it for it in there if "*" not in it) or ", ".join(there) or "none"
        return f"nothing before this makes a {' or '.join(wanted)} {name!r}{nearest(name, there)}; there are: {told}"

    def _is_there(self, kind: str, name: str) -> bool:
        own = self._things.get(WORKLOAD, ()) if self.facts.own_templates else ()
        return (
            kind in self._open
            or any(fnmatchcase(name, it) for it in self._things.get(kind, ()))
            or any(name.startswith(f"{it}-") for it in own)
        )
