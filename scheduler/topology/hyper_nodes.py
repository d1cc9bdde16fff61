"""Build the domains of a cluster from its HyperNodes, and report what is wrong with them.

1. A member counts only if it exists. A HyperNode can be a member of only one HyperNode, which has a higher tier.
2. A node belongs to one HyperNode, and to the HyperNodes above that one.
3. If several HyperNodes claim a node, the one of the lowest tier gets it, then the oldest, then the first by name; if
   several claim a HyperNode, the oldest gets it, then the first by name.

A fault has no effect elsewhere: the member is left out, its HyperNode is reported with the fault, and all other domains
are the same as without the faulty member.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import re2

from ..model.cluster import Cluster
from ..model.matching import selector_matches
from ..model.nodes import NodeInfo, Nodes
from ..model.objects import HyperNode, HyperNodeMember, LabelSelector
from .domains import Domain, Topology

NODE, HYPER_NODE = "Node", "HyperNode"
LONGEST_PATTERN = 256
"""Maximum length of a pattern for node names."""
MAX_MEMORY = 1 << 16
"""Maximum bytes that a compiled pattern may use. This also bounds the time of a match: `a{500}{500}` is refused."""


class PatternError(ValueError):
    """A pattern that RE2 cannot compile, or that exceeds a limit."""


def compiled(text: str) -> Any:
    """Compile a pattern with RE2, the syntax of Volcano's patterns.

    Python's `re` backtracks: `(a+)+$` on one long name would block a cycle for hours. RE2 needs linear time.

    Raises:
        PatternError: the pattern is invalid or too large.
    """
    if len(text) > LONGEST_PATTERN:
        raise PatternError(f"longer than {LONGEST_PATTERN} characters")
    options = re2.Options()
    options.max_mem, options.log_errors = MAX_MEMORY, False
    try:
        return re2.compile(text.encode(), options)  # bytes: decoding offsets takes most of the time of a match
    except re2.error as error:
        [reason] = error.args
        raise PatternError(reason.decode(errors="replace") if isinstance(reason, bytes) else reason) from None


class PatternMatches:
    """The nodes whose names match patterns. Each name is searched once for each pattern in use."""

    def __init__(self) -> None:
        self._names: frozenset[str] = frozenset()
        self._new: list[str] = []
        self._known: dict[str, list[str]] = {}
        self._found: dict[str, list[str]] = {}

    def begin(self, names: Iterable[str]) -> None:
        """Set the names of all nodes. Matches of patterns that were not requested since the last call are dropped."""
        current = frozenset(names)
        self._new = sorted(current - self._names)
        are_names_removed, self._names = not self._names <= current, current
        self._known, self._found = self._found, {}
        if are_names_removed:
            self._known = {text: [name for name in found if name in current] for text, found in self._known.items()}

    def of(self, text: str) -> list[str]:
        """Return the names that a pattern matches. Raises PatternError."""
        if text not in self._found:
            known = self._known.get(text)
            names = self._names if known is None else self._new
            search = compiled(text).search if names else None
            self._found[text] = (known or []) + [name for name in names if search is not None and search(name.encode())]
        return self._found[text]


class _Tree:
    """HyperNodes with their members, and the first fault of each HyperNode."""

    def __init__(self, nodes: Nodes, hyper_nodes: Mapping[str, HyperNode]) -> None:
        self._nodes, self._all = nodes, hyper_nodes
        self.order = sorted(hyper_nodes.values(), key=_age)
        self.faults: dict[str, str] = {}
        self._patterns = nodes.lasting.once("patterns", PatternMatches)
        self._patterns.begin(nodes.by_name)
        self._labelled: dict[str, dict[str, list[NodeInfo]]] = {}
        """Label key → value → nodes with this label."""
        self.parents: dict[str, str] = {}
        self._direct: dict[str, set[int]] = {}
        for one in self.order:
            self._read_members(one)
        self._assign_nodes()

    def _fault(self, name: str, text: str) -> None:
        self.faults.setdefault(name, text)

    def _read_members(self, one: HyperNode) -> None:
        name = one.metadata.name
        rows = self._direct[name] = set[int]()
        for number, member in enumerate(one.spec.members or ()):
            selectors = (member.selector.exact_match, member.selector.regex_match, member.selector.label_match)
            if sum(selector is not None for selector in selectors) != 1:
                self._fault(name, f"spec.members[{number}].selector: needs one of exactMatch, regexMatch, labelMatch")
            elif member.type == NODE:
                found = list(self._nodes_of(name, number, member))
                rows.update(found)
            elif member.type == HYPER_NODE:
                self._read_child(one, number, member)
            else:
                self._fault(name, f"spec.members[{number}].type: {member.type or 'empty'}; write Node or HyperNode")

    def _nodes_of(self, name: str, number: int, member: HyperNodeMember) -> Iterator[int]:
        selector, field = member.selector, f"spec.members[{number}].selector"
        if selector.exact_match is not None:
            info = self._nodes.by_name.get(selector.exact_match.name)
            if info is None:
                self._fault(name, f"{field}: there is no node {selector.exact_match.name}; correct or remove it")
            else:
                yield info.row
            return
        if selector.regex_match is not None:
            try:
                rows = [self._nodes.by_name[name].row for name in self._patterns.of(selector.regex_match.pattern)]
            except PatternError as error:
                self._fault(name, f"{field}.regexMatch.pattern: {error}; correct it")
                return
            what = f"pattern {selector.regex_match.pattern}"
        else:
            rows, what = self._rows_with(selector.label_match), "label selector"
        if not rows:
            self._fault(name, f"{field}: the {what} matches no node; correct or remove it")
        yield from rows

    def _rows_with(self, labels: LabelSelector | None) -> list[int]:
        """Return the nodes that a selector matches. Only nodes with its rarest label are compared."""
        if labels is None or not (labels.match_labels or labels.match_expressions):
            return []
        candidates = self._nodes.rows
        for key, value in (labels.match_labels or {}).items():
            candidates = min(candidates, self._with_label(key).get(value, []), key=len)
        return [node.row for node in candidates if selector_matches(labels, node.labels)]

    def _with_label(self, key: str) -> dict[str, list[NodeInfo]]:
        found = self._labelled.get(key)
        if found is None:
            found = self._labelled[key] = {}
            for node in self._nodes.rows:
                if (value := node.labels.get(key)) is not None:
                    found.setdefault(value, []).append(node)
        return found

    def _read_child(self, one: HyperNode, number: int, member: HyperNodeMember) -> None:
        name, field = one.metadata.name, f"spec.members[{number}]"
        if member.selector.exact_match is None:
            self._fault(name, f"{field}.selector: a HyperNode is named by exactMatch alone")
            return
        below = member.selector.exact_match.name
        child = self._all.get(below)
        if child is None:
            self._fault(name, f"{field}: there is no HyperNode {below}; correct or remove it")
        elif below == name or self._is_below(name, below):
            self._fault(name, f"{field}: cyclic dependency: {name} is below its member {below}; remove one")
        elif child.spec.tier >= one.spec.tier:
            text = f"tier {child.spec.tier} of member {below} is not below its own, {one.spec.tier}"
            self._fault(name, f"{field}: {text}; correct spec.tier")
        elif (parent := self.parents.setdefault(below, name)) != name:
            self._fault(name, f"{field}: HyperNode {below} already has the parent {parent}; remove one")

    def _is_below(self, name: str, above: str) -> bool:
        """Whether `name` is a direct or indirect member of `above`, whatever the tiers."""
        visited, waiting = set[str](), [above]
        while waiting:
            one = self._all.get(waiting.pop())
            for member in (one.spec.members or ()) if one is not None else ():
                found = member.selector.exact_match.name if member.selector.exact_match is not None else ""
                if member.type != HYPER_NODE or found in visited:
                    continue
                if found == name:
                    return True
                visited.add(found)
                waiting.append(found)
        return False

    def _assign_nodes(self) -> None:
        """Assign each node to one HyperNode: among those of the lowest tier, the oldest."""
        lowest: dict[int, str] = {}
        for one in sorted(self.order, key=lambda hyper_node: hyper_node.spec.tier):
            name = one.metadata.name
            for row in sorted(self._direct[name]):
                first = lowest.setdefault(row, name)
                if first != name:
                    self._direct[name].discard(row)
                    if name not in self.above(first):
                        node = self._nodes.rows[row].name
                        self._fault(name, f"spec.members: node {node} is in HyperNode {first} already; remove one")

    def above(self, name: str) -> Iterator[str]:
        while (parent := self.parents.get(name)) is not None:
            yield parent
            name = parent

    def rows(self) -> dict[str, set[int]]:
        """Return the rows of each HyperNode, the rows of all HyperNodes below it included."""
        found = {name: set(rows) for name, rows in self._direct.items()}
        for one in sorted(self.order, key=lambda hyper_node: hyper_node.spec.tier):
            if (parent := self.parents.get(one.metadata.name)) is not None:
                found[parent] |= found[one.metadata.name]
        return found


def _age(one: HyperNode) -> tuple[str, str]:
    return (one.metadata.creation_timestamp or "", one.metadata.name)


def topology_now(cluster: Cluster) -> Topology:
    """Return the domains of the cluster's present HyperNodes. Call after `Nodes.refresh`."""
    nodes = cluster.nodes
    known = nodes.kept.once("hyper-nodes", dict[int, Topology])
    if cluster.hyper_nodes_version not in known:
        known.clear()
        known[cluster.hyper_nodes_version] = topology_of(nodes, cluster.hyper_nodes)
    return known[cluster.hyper_nodes_version]


def topology_of(nodes: Nodes, hyper_nodes: Mapping[str, HyperNode]) -> Topology:
    """Return the domains that the HyperNodes describe."""
    tree = _Tree(nodes, hyper_nodes)
    rows = tree.rows()
    domains = {
        one.metadata.name: Domain(
            one.metadata.name,
            one.spec.tier,
            one.spec.tier_name,
            np.array(sorted(rows[one.metadata.name]), dtype=np.int64),
            tree.parents.get(one.metadata.name, ""),
        )
        for one in tree.order
    }
    return Topology(len(nodes.rows), _with_nodes(domains.values()), tree.faults)


def _with_nodes(domains: Iterable[Domain]) -> list[Domain]:
    return sorted((domain for domain in domains if len(domain.rows)), key=lambda domain: (domain.tier, domain.name))
