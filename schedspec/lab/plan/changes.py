"""Compare two sets of files: the changes of the policy and of the objects that a policy reads (`KINDS`).

The cluster's own objects define the present. In the proposed world, an object is replaced if it differs between the two
sets or, without a first set, differs from the cluster's object. An object that only the first set has is removed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec
import yaml

from ...scheduler.inputs import PolicyLoaded
from ...scheduler.lint.objects import Document, Manifest, ManifestError, documents, refusals
from ...scheduler.lint.policy_rules import evicting, voters
from ...scheduler.lint.queue_rules import queue_findings
from ...scheduler.lint.schemas import definitions
from ...scheduler.model import objects, resources
from ...scheduler.model.errors import PlacedError
from ...scheduler.model.queue import Queue
from ...scheduler.model.state_kinds import STATE_KINDS
from ...scheduler.policy.loader import PolicyError, load_policy, read_policy, texts_in
from ...scheduler.policy.model import Policy
from ...scheduler.reasons.text import count
from ...virtual.state import State, kueue
from .differences import BUDGET, changed_objects, describe, left_behind, same, with_status

KINDS = {
    "HyperNode": "topology.volcano.sh",
    "Node": "",
    "PodDisruptionBudget": "policy",
    "PriorityClass": "scheduling.k8s.io",
    "Queue": "scheduling.volcano.sh",
}
_POLICY = re.compile(r"^\s*(actions|tiers|default_scheduler_conf)\s*:", re.MULTILINE)
_OURS = re.compile(rf"[\"']?\bkind[\"']?\s*:\s*[\"']?({'|'.join(KINDS)}|List)\b")
_MANIFEST = re.compile(r"[\"']?\bkind[\"']?\s*:\s*[\"']?[A-Z]")


class ChangeError(PlacedError):
    """Files that cannot be planned."""


@dataclass(frozen=True, slots=True)
class Side:
    """One set of files: a folder or a revision, by name. Files that are neither policies nor manifests are ignored."""

    name: str
    files: Mapping[str, str]

    def place(self, path: str) -> str:
        """Return the place of a file for errors: `main:queues.yaml`; the name alone if it is that of the file."""
        return self.name if Path(self.name).name == path else f"{self.name}:{path}"

    def policies(self) -> dict[str, str]:
        return {path: text for path, text in self.files.items() if _POLICY.search(text) and not _only_quotes(path)}

    def declared(self, other: Side | None, crds: Path | None = None) -> DeclaredState:
        """Return the objects in files that differ from the other side; with `crds`, also Kueue's. Raises ChangeError.

        `crds` is the folder of Kueue's definitions.
        """
        found, unchanged = DeclaredState(crds), DeclaredState(crds)
        for path, text in sorted(self.files.items()):
            is_unchanged = other is not None and other.files.get(path) == text
            if not _only_quotes(path) and _MANIFEST.search(text):
                with suppress(ChangeError) if is_unchanged else nullcontext():
                    (unchanged if is_unchanged else found).read(self.place(path), text)
        for kind, key in found.places.keys() & unchanged.places.keys():
            found.note_repeated(kind, key, unchanged.places[kind, key][0])
        return found


@dataclass(slots=True)
class DeclaredState:
    """The objects of one side that a plan reads, by kind and name, and what it does not read."""

    crds: Path | None = None
    """The folder of Kueue's definitions, if Kueue decides."""
    objects: dict[tuple[str, str], Any] = field(default_factory=dict)
    served: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    """The objects of Kueue and its configuration, where Kueue decides."""
    places: dict[tuple[str, str], tuple[str, Document]] = field(default_factory=dict)
    """The file of each object, and its place there."""
    repeated: list[str] = field(default_factory=list)
    """Objects that two files have, in words."""
    ignored: Counter[str] = field(default_factory=Counter)
    """Kind → number of objects that a plan does not read."""

    @property
    def unread(self) -> str:
        """The objects that a plan does not read, by kind."""
        return ", ".join(_plural(number, kind) for kind, number in sorted(self.ignored.items()))

    def read(self, place: str, text: str) -> None:
        """Add the objects of a file. Raises ChangeError."""
        line = 1
        try:
            for document in documents(text):
                line, kind = document.line, document.item.get("kind", "")
                group = str(document.item.get("apiVersion", "")).rpartition("/")[0]
                if any(texts_in(document.node)):
                    continue  # an object that holds a policy
                if self.crds is not None and _is_of_kueue(kind, group, document.item):
                    self._add_served(place, document, self.crds)
                elif kind not in KINDS or group != KINDS[kind] or (self.crds is not None and "volcano" in group):
                    self.ignored[kind or "object without a kind"] += 1
                else:
                    self._add(place, document)
        except ChangeError:
            raise
        except ManifestError as error:
            if _OURS.search(text):
                raise ChangeError(f"{place}:{error.line}", error.problem, error.remedy) from error
            self.ignored["file that is not YAML"] += 1  # a chart's template
        except (msgspec.ValidationError, ValueError) as error:
            raise ChangeError(f"{place}:{line}", str(error), "correct this object") from error

    def _add(self, place: str, document: Document) -> None:
        for refusal in refusals(document, place):
            if refusal.is_error:
                raise ChangeError(f"{place}:{refusal.line}", f"{refusal.field}: {refusal.text}", refusal.remedy)
        kind = document.item["kind"]
        struct: Any = msgspec.convert(document.item, STATE_KINDS[kind].struct)
        _check(struct)
        struct.metadata.annotations = objects.read_annotations(struct.metadata.annotations)
        if isinstance(struct, objects.PodDisruptionBudget):
            struct.metadata.namespace = struct.metadata.namespace or "default"
        if (kind, struct.metadata.key) in self.places:
            self.note_repeated(kind, struct.metadata.key, self.places[kind, struct.metadata.key][0], place)
        self.objects[kind, struct.metadata.key] = struct
        self.places[kind, struct.metadata.key] = place, document

    def _add_served(self, place: str, document: Document, folder: Path) -> None:
        for refusal in refusals(document, place, folder):
            if refusal.is_error:
                raise ChangeError(f"{place}:{refusal.line}", f"{refusal.field}: {refusal.text}", refusal.remedy)
        kind, meta = document.item["kind"], document.item["metadata"]
        if kueue.PLURALS.get(kind, ("", True))[1]:
            meta.setdefault("namespace", "default")
        key = kueue.key_of(document.item)
        if (kind, key) in self.places:
            self.note_repeated(kind, key, self.places[kind, key][0], place)
        self.served[kind, key] = document.item
        self.places[kind, key] = place, document

    def note_repeated(self, kind: str, key: str, earlier: str, place: str = "") -> None:
        """Note an object that two files have; the object in `place`, or in the file that differs, is used."""
        place = place or self.places[kind, key][0]
        self.repeated.append(f"{kind} {key} is in {earlier} and in {place}: the latter is used")

    def without_budgets(self) -> None:
        """Leave out the budgets, which no policy reads."""
        for key in [key for key in self.objects if key[0] == BUDGET]:
            del self.objects[key]
            self.ignored[BUDGET] += 1


def _is_of_kueue(kind: str, group: str, item: Mapping[str, Any]) -> bool:
    is_configuration = kind == "ConfigMap" and kueue.CONFIGURATION in (item.get("data") or {})
    return is_configuration or (group == kueue.GROUP and kind in kueue.PLURALS)


def _only_quotes(path: str) -> bool:
    return path.endswith((".feature", ".py", ".md"))


def _check(item: Any) -> None:
    """Raise ValueError for an object that the scheduler could not read."""
    if isinstance(item, objects.Queue):
        Queue(item)
    elif isinstance(item, objects.Node):
        resources.parse(item.status.allocatable or item.status.capacity)


class PolicyUse(Enum):
    DECIDES = "ours reads them"
    PASSED_ON = "the scheduler's own program reads them, and ours if it can"
    NONE = "they are not its configuration"


@dataclass(slots=True)
class Worlds:
    state: State
    now: Policy
    proposed: Policy
    proposed_state: State
    texts: tuple[str, str] = ("", "")
    unread: str = ""
    """Why our model cannot read a policy; empty if it can."""
    changes: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def find_worlds(
    state: State,
    now: Side | None,
    proposed: Side,
    policy_path: str = "",
    crds: Path | None = None,
    *,
    policies: PolicyUse = PolicyUse.DECIDES,
) -> Worlds:
    """Find the changes.

    `now`: the files as they are; None: the cluster itself. `policy_path`: the policy file on both sides, if several
    could be meant. `crds`: the folder of Kueue's definitions, if Kueue decides. `policies`: what the scheduler does
    with policy files.

    Raises:
        ChangeError: a file cannot be read, or several policies could be meant.
        PolicyError: a policy is refused.
    """
    worlds = Worlds(state, Policy((), ()), Policy((), ()), state)
    if policies is not PolicyUse.NONE:
        _find_policies(worlds, now, proposed, policy_path, _reader(worlds, policies))
    known_files = DeclaredState() if now is None else now.declared(proposed, crds)
    declared = proposed.declared(now, crds)
    if now is None and len(proposed.files) == 1 and not declared.places and not proposed.policies():
        remedy = f"name a policy, or {', '.join(KINDS)}; submit work with --submit"
        raise ChangeError(proposed.name, f"has nothing that a plan reads: {declared.unread or 'no manifest'}", remedy)
    if not any(map(_reads_budgets, (worlds.now, worlds.proposed))):
        known_files.without_budgets()
        declared.without_budgets()
    before, after = known_files.objects, declared.objects
    replaced: dict[tuple[str, str], Any] = {}
    for key, item in after.items():
        known = state.objects[key[0]].get(key[1])
        if (key in before and before[key] == item) or (known is not None and same(known, item)):
            continue
        replaced[key] = item
        worlds.changes.append(describe(state, key, known, item))
        has_drifted = key in before and known is not None and not same(known, before[key])
        if has_drifted:
            worlds.notes.append(
                f"{key[0]} {key[1]}: the cluster's object differs from that of {now.name if now else ''}"
            )
    removed = [key for key in before if key not in after and key[1] in state.objects[key[0]]]
    worlds.changes += [f"{kind} {name} is removed{left_behind(state, kind, name)}" for kind, name in removed]
    worlds.proposed_state = _changed(state, replaced, removed)
    if crds is not None:
        present = None if now is None else known_files.served
        others, changes, notes = changed_objects(state, present, declared.served, definitions(crds))
        worlds.proposed_state.others = others
        worlds.changes += changes
        worlds.notes += notes
    worlds.notes[:0] = _remarks(worlds, declared, replaced)  # first: they are about the files of the change
    return worlds


def _remarks(worlds: Worlds, declared: DeclaredState, replaced: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield what lint says of changed queues under the proposed policy, and what the plan did not read."""
    queues = [name for kind, name in replaced if kind == "Queue"]
    manifest = Manifest()
    for name, item in worlds.proposed_state.objects["Queue"].items():
        manifest.queues[name] = Queue(item)
        manifest.places[name] = declared.places.get(("Queue", name), _UNPLACED)
    for finding in queue_findings(manifest, worlds.proposed) if queues else ():
        if any(finding.field.startswith(f"Queue {name}.") for name in queues):
            yield f"lint: {finding.render()}"
    yield from declared.repeated
    if declared.ignored:
        needs = "; budgets need a policy that evicts and has the plugin pdb" if declared.ignored[BUDGET] else ""
        yield f"ignored, because a plan does not read them: {declared.unread}{needs}"


_UNPLACED = ("the cluster", Document(0, {}, yaml.MappingNode("", [])))


def _reads_budgets(policy: Policy) -> bool:
    return any(option.name == "pdb" for action in evicting(policy) for _, option in voters(policy, action))


def _plural(number: int, kind: str) -> str:
    return count(number, f"{kind}e" if kind.endswith("s") and number > 1 else kind)


def _reader(worlds: Worlds, policies: PolicyUse) -> Callable[[str, str], Policy]:
    """Return a function that reads a policy; of a policy that is passed on, it notes why ours cannot read it."""

    def read(text: str, place: str) -> Policy:
        try:
            return load_policy(text, place)
        except PolicyError as error:
            if policies is PolicyUse.DECIDES:
                raise
            worlds.unread = str(error)
            return Policy((), (), {"": {"text": text}})

    return read


def _find_policies(
    worlds: Worlds, now: Side | None, proposed: Side, path: str, read: Callable[[str, str], Policy]
) -> None:
    own = worlds.state.policy
    before = {} if now is None else now.policies()
    after = proposed.policies()
    if path and path not in after:
        if not Path(path).is_file():
            remedy = f"it has {_listed(after)}; or name the file with the policy that the cluster runs"
            raise ChangeError("--policy", f"{proposed.name} has no policy {path}", remedy)
        if own is not None:
            worlds.notes.append(f"the state's own policy ({own.source}) is not used: --policy names {path}")
        own, path = PolicyLoaded(path, read_policy(Path(path))), ""
    changed = [path] if path else sorted(name for name, text in after.items() if before.get(name) != text)
    if now is None and own is not None and len(changed) > 1:
        known = read(own.text, own.source)
        changed = [name for name in changed if read(after[name], proposed.place(name)) != known]
    if len(changed) > 1:
        raise ChangeError(proposed.name, f"changes several policies: {', '.join(changed)}", "name one with --policy")
    if not changed and own is None and len(after) == 1:
        changed = [*after]
    if not changed and own is None:
        remedy = "add --policy FILE, the policy that the cluster runs (or propose one)"
        raise ChangeError(worlds.state.source, "has no policy, and no policy changes", remedy)
    text = after[changed[0]] if changed else ""
    new = read(text, proposed.place(changed[0])) if changed else None
    old_text = before.get(changed[0], "") if changed else ""
    if old_text:
        worlds.now = read(old_text, now.place(changed[0]) if now else changed[0])
        if own is not None and read(own.text, own.source) != worlds.now:
            worlds.notes.append(f"the state's own policy ({own.source}) is not that of {now.name if now else ''}")
    elif own is not None:
        worlds.now = read(own.text, own.source)
    else:
        assert new is not None
        worlds.now = new
        worlds.notes.append("the state has no policy: the proposed policy is used for now as well")
    worlds.proposed = worlds.now if new is None else new
    old_text = old_text or (own.text if own is not None else text)
    worlds.texts = old_text, text or old_text
    if worlds.proposed != worlds.now:
        worlds.changes.append(f"the policy {changed[0]}: {_difference(worlds.now, worlds.proposed)}")


def _listed(names: Mapping[str, str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _difference(old: Policy, new: Policy) -> str:
    """Describe the difference of two policies in a few words."""
    parts = []
    if old.actions != new.actions:
        parts.append(f"actions {', '.join(old.actions)} → {', '.join(new.actions)}")
    before, after = _plugins(old), _plugins(new)
    if before != after:
        parts.append(f"tiers {before} → {after}")
    return "; ".join(parts) or "switches or arguments"


def _plugins(policy: Policy) -> str:
    return " | ".join(" ".join(option.name for option in tier) for tier in policy.tiers)


def copied(state: State) -> State:
    """Return a state whose objects can be changed without changing those of this one."""
    found = _changed(state, {}, [])
    found.others = {kind: {**objects} for kind, objects in state.others.items()}
    return found


def _changed(state: State, replaced: Mapping[tuple[str, str], Any], removed: list[tuple[str, str]]) -> State:
    kinds = {kind: {**found} for kind, found in state.objects.items()}
    for (kind, name), item in replaced.items():
        kinds[kind][name] = with_status(kinds[kind].get(name), item)
    for kind, name in removed:
        kinds[kind].pop(name, None)
    return State(
        state.source,
        state.taken,
        state.is_exact,
        kinds,
        state.others,
        state.policy,
        state.scheduler_names,
        state.node_selector,
    )
