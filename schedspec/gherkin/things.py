"""Track which named things exist at each point of a scenario: at its start, and after each sentence.

A name is rejected only if it is certainly unknown: after a sentence that does not declare what it creates, every name
is accepted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fnmatch import fnmatchcase
from pathlib import Path

from ..api.capabilities import Capability
from ..api.kinds import BUILT_IN_QUEUES
from .tables import Amounts, Row, nearest

WORKLOAD = "workload"
POD = "pod"
QUEUE = "queue"
NODE = "node"
PRIORITY_CLASS = "priority class"
ADMISSION_CHECK = "admission check"
MODEL = "model of card"
"""The model that a sentence of the scenario names; it applies to work that names no model."""
CARD = "node with a card"
"""A model of card that a node has."""
RESOURCE = "node with the resource"
TAINT = "node with a taint"
"""The key of a taint."""
LABEL = "node with the label"
"""A label with its value, `zone=a`."""
DOMAIN = "node with a"
"""A level of the network, of which a node names its domain: rack or spine."""
LABEL = "node with the label"
"""A label of a node: `zone=a`."""
NODE_GROUP = "node of group"
"""A group of nodes that a queue may require or avoid (the plugin nodegroup)."""
ANY_NODES = tuple((kind, "*") for kind in (NODE, RESOURCE, CARD, TAINT, DOMAIN, LABEL, NODE_GROUP))
"""Things that may exist after a sentence that creates nodes without naming them."""
POLICY = "policy"
"""The policy exists, and the scheduler accepts it."""
POLICY_FILE = "policy file"
"""The policy exists; the scenario tests whether the scheduler accepts it."""

POLICY_OF, QUEUES_OF, NODES_OF = "policy of a file", "queues of a file", "nodes of a file"
JOBS_OF, KUEUE_QUEUES_OF = "jobs of a file", "Kueue's queues of a file"
"""Files that a sentence names: beside the feature, in the root of the run, or in the working directory."""
FILES = (POLICY_OF, QUEUES_OF, NODES_OF, JOBS_OF, KUEUE_QUEUES_OF)
SUBMISSION = "submission that may be refused"
"""A queue or a policy of which a scenario may state that it is refused."""
REASON = "reason"
"""Words that the scheduler may publish for work that waits."""

_ONCE = (WORKLOAD, NODE, PRIORITY_CLASS, QUEUE)
"""Kinds of which a name stands for one thing at a time."""
_AT_FIRST = (
    *((RESOURCE, name) for name in ("cpu", "memory", "pods", "ephemeral-storage")),
    *((QUEUE, name) for name in BUILT_IN_QUEUES),
    (PRIORITY_CLASS, "system-cluster-critical"),
    (PRIORITY_CLASS, "system-node-critical"),
)


@dataclass(frozen=True)
class FileContents:
    """Things that the objects of a file create, and things that they need, each with the name of the object."""

    made: Sequence[tuple[str, str]] = ()
    needed: Sequence[tuple[str, str, str]] = ()
    """Kind and name of a thing, and the object that needs it."""


@dataclass(frozen=True)
class RunFacts:
    """The facts of a run for the collection: checks of policies and reasons, and what exists beside the sentences."""

    policy: Callable[[str, bool], str] = lambda name, lints: ""  # noqa: ARG005 - nothing is known
    """Return the problem of the policy of that name, with or without lint; empty if there is none."""
    reason: Callable[[str, Iterable[str]], str] = lambda text, names: ""  # noqa: ARG005 - nothing is known
    """Return the problem of the words of a reason, given the names of the scenario; empty if there is none."""
    file: Callable[[str, str, Path], str] = lambda kind, name, folder: ""  # noqa: ARG005 - nothing is known
    """Return the problem of a file of that kind and name, named in a feature of that folder; empty if there is none."""
    unread: Callable[[Sequence[tuple[str, str]], Path], Mapping[str, str]] = lambda policies, folder: {}  # noqa: ARG005
    """Return the settings of queues that none of these policies reads, each with why and what to do.

    Policies are kind (`POLICY` or `POLICY_OF`) and name; without any, the run's own policy decides.
    """
    contents: Callable[[str, str, Path], FileContents] = lambda kind, name, folder: FileContents()  # noqa: ARG005
    """Return what a file of that kind and name creates and needs; only for files without a problem."""
    folder: Path = Path()
    """The folder of the feature file."""
    own_templates: bool = False
    """A project's own templates may create more objects than rows name: `train-0` counts as created with `train`."""
    lacking: frozenset[Capability] = frozenset()
    """What the scheduler under test lacks: a scenario that needs it is skipped, and its policy judges nothing."""
    preexisting: frozenset[str] = frozenset()
    """Kinds of things that may exist on the cluster without a sentence that creates them."""
    checks_names: bool = True

    def of_another_scheduler(self) -> RunFacts:
        """Return the facts for a scenario that the scheduler under test lacks: without that scheduler's judgements."""
        return replace(
            self,
            policy=lambda name, _: self.policy(name, False),
            reason=lambda text, names: "",  # noqa: ARG005 - another scheduler publishes it
            unread=lambda policies, folder: {},  # noqa: ARG005 - another scheduler reads it
        )


@dataclass
class KnownThings:
    """The things that exist at some point of a scenario."""

    facts: RunFacts
    _things: dict[str, list[str]] = field(default_factory=dict)
    """Kind → names, in the order of their creation."""
    _open: set[str] = field(default_factory=set)
    """Kinds of which every name is accepted."""
    _anything: bool = False
    _needed: list[tuple[int, str, str, str]] = field(default_factory=list)
    """Line, kind and name of each thing that the scenario uses, and the name of its owner."""
    _settings: list[tuple[int, str, str]] = field(default_factory=list)
    """Line, column and parameter of each cell that has an effect only if the policy reads it."""
    _rows: dict[str, tuple[int, Row]] = field(default_factory=dict)
    """Name → the line and the cells of a queue, as tables have set them so far."""
    _parents: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Name → the parent that a table gives it last, and the line."""
    _capacity: Counter[str] = field(default_factory=Counter)
    """Capacity of all nodes that tables have added."""
    _reserved: list[Mapping[str, tuple[int, Amounts]]] = field(default_factory=list)
    """After each table: queue → line and guarantee."""
    _in_force: tuple[str, str] | None = None
    """Kind and name of the policy that a sentence has given last."""
    _gone: set[tuple[str, str]] = field(default_factory=set)
    """Things that a later sentence may create again: they were removed, or exist at the scenario's start."""
    _refused: set[str] = field(default_factory=set)
    """Names whose refusal the scenario asserts; empty text: the last submission."""

    def __post_init__(self) -> None:
        self._anything = not self.facts.checks_names
        self._open |= self.facts.preexisting
        self.add(_AT_FIRST)
        self._gone.update(_AT_FIRST)  # a scenario may create them in its own words

    def add(self, things: Iterable[tuple[str, str]]) -> None:
        """Add things that exist from now on; the name `*` allows any name of that kind."""
        for kind, name in things:
            if name == "*":
                self._open.add(kind)
            self._things.setdefault(kind, []).append(name)
            self._gone.discard((kind, name))

    def repeated(self, things: Iterable[tuple[str, str]]) -> Iterator[str]:
        """Yield the problem of each thing that exists already: a second one would replace the first."""
        for kind, name in things:
            if kind in _ONCE and name in self._things.get(kind, ()) and (kind, name) not in self._gone:
                yield f"a {kind} {name!r} exists already, and would be replaced: write another name"

    def remove(self, kinds: str, name: str) -> None:
        """Record that the things of that name are gone."""
        self._gone.update((kind, name) for kind in kinds.split("|"))

    def replace_policies(self, things: Iterable[tuple[str, str]]) -> Iterator[str]:
        """Forget earlier policies if another one is given before any work exists: they never decide anything.

        Yield the problem of a policy that is in force already.
        """
        kinds = (POLICY, POLICY_OF)
        given = next((thing for thing in things if thing[0] in kinds), None)
        if given is None:
            return
        if given == self._in_force:
            yield f"the policy {given[1]!r} is in force already, so that this sentence changes nothing: remove it"
        self._in_force = given
        if not self._things.get(WORKLOAD):
            for kind in kinds:
                self._things.pop(kind, None)

    def add_file(self, line: int, kind: str, name: str, *, changed: bool) -> list[str]:
        """Add what a file creates, and require what it needs. Return the problem of each thing that exists already.

        Where a table may have `changed` how many pods there are, every number of a pod is accepted.
        """
        contents = self.facts.contents(kind, name, self.facts.folder)
        repeated = list(self.repeated(contents.made))
        self.add(
            (kind, re.sub(r"-\d+$", "-[0-9]*", it) if changed and kind == POD else it) for kind, it in contents.made
        )
        for needed, thing, owner in contents.needed:
            self.need(line, [(needed, thing)], owner)
        return repeated

    def add_anything(self) -> None:
        """Accept every name from now on: a sentence does not declare what it creates."""
        self._anything = True

    def need(self, line: int, things: Iterable[tuple[str, str]], owner: str) -> None:
        """Require that some sentence of the scenario, also a later one, creates these things.

        Args:
            line: The line of the use.
            things: Kind and name of each thing.
            owner: The name of the object that needs them.
        """
        self._needed += [(line, kind, name, owner) for kind, name in things]

    def need_setting(self, line: int, column: str, parameter: str) -> None:
        """Require that a policy of the scenario, also a later one, reads this setting of a queue."""
        self._settings.append((line, column, parameter))

    def tree(self, rows: Iterable[tuple[int, Row]]) -> list[tuple[int, Row]]:
        """Add rows of queues, and return all rows so far: a later one replaces the cells of an earlier one."""
        for line, row in rows:
            name = str(row.get("name", ""))
            self._rows[name] = line, {**self._rows.get(name, (0, {}))[1], **row}
        return list(self._rows.values())

    def link(self, line: int, name: str, parent: str) -> None:
        """Record the parent of a thing in a tree."""
        self._parents[name] = (parent, line)

    def provide(self, capacities: Iterable[Amounts]) -> None:
        """Add the capacity of nodes."""
        for amounts in capacities:
            self._capacity.update(amounts)

    def reserve(self, guarantees: Mapping[str, tuple[int, Amounts]]) -> None:
        """Record the guarantees of queues after a table."""
        if changed := {name: found for name, found in guarantees.items() if found[1]}:
            self._reserved.append({**(self._reserved[-1] if self._reserved else {}), **changed})

    def expect_refusal(self, owner: str) -> None:
        """Record that the scenario asserts the refusal of `owner`, or waits for a reason that names it."""
        self._refused.add(owner)

    def missing(self) -> Iterator[tuple[int, str]]:
        """Yield line and text for each thing that the scenario uses and no sentence creates."""
        yield from self._unread()
        yield from self._circles()
        yield from self._guarantees()
        for line, kind, name, owner in self._needed:
            if {owner, ""} & self._refused:
                continue
            if kind == QUEUE and self._exists(QUEUE, f"{owner.rpartition('/')[0]}/{name}"):
                continue
            if kind == QUEUE and self._is_work(owner) and (home := self._namespace_of(name)):
                text = f"queue {name!r} is in namespace {home}, and takes work of that namespace only"
                yield line, f"{text}: call it '{home}/{owner.rpartition('/')[2]}'"
                continue
            if problem := self.problem(kind, name):
                yield line, problem.replace("no earlier sentence", "no sentence")
            elif kind == QUEUE and self._is_work(owner) and self._parents.get(owner) != (name, line):
                leaves = [child for child, (parent, _) in self._parents.items() if parent == name]
                if leaves:
                    yield line, f"queue {name!r} has children, and takes no work: name one of {', '.join(leaves)}"

    def _namespace_of(self, queue: str) -> str:
        """Return the namespace that has the only queue of this name; empty if other work can be in such a queue."""
        named = [thing.rpartition("/")[::2] for thing in self._things.get(QUEUE, ())]
        homes = [space for space, name in named if queue in (name, f"{space}/{name}")]
        return homes[0] if len(homes) == 1 else ""

    def _unread(self) -> Iterator[tuple[int, str]]:
        if self._anything or not self._settings or self._refused:
            return
        policies = [(kind, name) for kind in (POLICY, POLICY_OF) for name in self._things.get(kind, ())]
        unread = self.facts.unread(policies, self.facts.folder)
        for line, column, parameter in self._settings:
            if problem := unread.get(parameter.partition(" ")[0].replace("_", " ")):
                yield line, f"{column} {problem}"

    def _guarantees(self) -> Iterator[tuple[int, str]]:
        """Yield the guarantees that all nodes of the scenario together could not keep."""
        if self._anything or self._refused or NODE in self._open:
            return
        for reserved in self._reserved:
            tops = [name for name in reserved if self._parents.get(name, ("", 0))[0] not in reserved]
            for resource, most in self._capacity.items():
                total = sum((reserved[name][1].get(resource, Decimal(0)) for name in tops), Decimal(0))
                if total > most:
                    line = max(line for line, amounts in reserved.values() if resource in amounts)
                    who = "all queues together: " if len(tops) > 1 else ""
                    text = f"{who}guarantee {resource} {total:f} is above the {most:f} of all nodes"
                    yield line, f"{text}: no scheduler can keep it"

    def _circles(self) -> Iterator[tuple[int, str]]:
        for name in self._parents:
            seen, at = [name], self._parents[name][0]
            while at in self._parents and at not in seen:
                seen.append(at)
                at = self._parents[at][0]
            if at == name and self._parents[name][1] == max(self._parents[one][1] for one in seen):
                yield self._parents[name][1], f"a circle of parents: {' → '.join([*seen, name])}"

    def has(self, kind: str) -> bool:
        """Whether a thing of that kind exists or may exist."""
        return self._anything or bool(self._things.get(kind))

    def has_work_in(self, queue: str) -> bool:
        """Whether work may exist in a queue or below it."""
        by_work = (
            name for _, kind, name, owner in self._needed if kind == QUEUE and (not owner or self._is_work(owner))
        )
        found = set(by_work)  # a row without a name is about all work of a file
        while more := {self._parents[name][0] for name in found if name in self._parents} - found:
            found |= more
        return self._anything or queue in found

    def _is_work(self, name: str) -> bool:
        return name in self._things.get(WORKLOAD, ())

    def problem(self, kinds: str, name: str) -> str:
        """Return the problem of using this name; empty if there is none."""
        if kinds in (POLICY, POLICY_FILE):
            self._in_force = self._in_force if kinds == POLICY else None
            return self.facts.policy(name, kinds == POLICY)
        if kinds in FILES:
            return self.facts.file(kinds, name, self.facts.folder)
        if kinds == REASON:
            names = [
                *(thing for found in self._things.values() for thing in found),
                *(need[2] for need in self._needed),
            ]
            return "" if self._anything else self.facts.reason(name, names)
        wanted = kinds.split("|")
        if self._anything or any(self._exists(kind, name) for kind in wanted):
            return ""
        existing = list(dict.fromkeys(thing for kind in wanted for thing in self._things.get(kind, ())))
        known = ", ".join(thing for thing in existing if "*" not in thing) or ", ".join(existing) or "none"
        thing = f"{' or '.join(wanted)} {name!r}"
        return f"no earlier sentence creates a {thing}{nearest(name, existing)}; there are: {known}"

    def _exists(self, kind: str, name: str) -> bool:
        own = self._things.get(WORKLOAD, ()) if self.facts.own_templates else ()
        return (
            kind in self._open
            or any(fnmatchcase(name, thing) for thing in self._things.get(kind, ()))
            or any(name.startswith(f"{thing}-") for thing in own)
        )
