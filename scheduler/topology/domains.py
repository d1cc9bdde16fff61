"""Domains: named sets of nodes that are close to each other, in tiers.

The domains of a topology are nested or disjoint, and a parent's tier is above its children's. Sums over all domains of
a tier are computed at once, as arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..model.nodes import Mask, Nodes, Rows


@dataclass(slots=True, eq=False)
class Domain:
    """Nodes that are close to each other.

    Attributes:
        tier: The nodes of a domain of a lower tier are closer to each other.
        rows: The rows of the domain's nodes, ascending.
        parent: The name of the domain around this one; empty for an outermost domain.
    """

    name: str
    tier: int
    tier_name: str
    rows: Rows
    parent: str = ""
    children: list[Domain] = field(default_factory=list)
    mask: Mask = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))

    @property
    def kind(self) -> str:
        """Return the users' name for domains of this tier: `rack`, or `tier 1`."""
        return self.tier_name or f"tier {self.tier}"

    def __repr__(self) -> str:
        return f"<Domain {self.name} {self.kind}>"


class DomainSet:
    """Disjoint domains, for sums over all of them at once."""

    def __init__(self, domains: Iterable[Domain]) -> None:
        self.domains = list(domains)
        sizes = [len(domain.rows) for domain in self.domains]
        self._rows = np.concatenate([domain.rows for domain in self.domains]) if sizes else np.zeros(0, dtype=np.int64)
        self._starts = np.concatenate(([0], np.cumsum(sizes[:-1]))).astype(np.int64) if sizes else self._rows

    def __len__(self) -> int:
        return len(self.domains)

    def sums(self, by_row: Any) -> Any:
        """Return for each domain the sum over its nodes of an array with one entry (or row) per node."""
        values = by_row[self._rows]
        return np.add.reduceat(values, self._starts, axis=0) if len(self.domains) else values


class Topology:
    """The domains of a cluster.

    Attributes:
        tiers: Tier → its domains, the lowest tier first.
        faults: HyperNode → what is wrong with this HyperNode.
        outermost: The domains without a parent.
    """

    def __init__(self, size: int, domains: Iterable[Domain], faults: Mapping[str, str]) -> None:
        self.by_name = {domain.name: domain for domain in domains}
        self.faults = dict(faults)
        by_tier: dict[int, list[Domain]] = {}
        self._lowest: list[Domain | None] = [None] * size
        for domain in sorted(self.by_name.values(), key=lambda domain: (-domain.tier, domain.name)):
            domain.mask = np.zeros(size, dtype=np.bool_)
            domain.mask[domain.rows] = True
            for row in domain.rows:
                self._lowest[row] = domain
        for domain in sorted(self.by_name.values(), key=lambda domain: (domain.tier, domain.name)):
            by_tier.setdefault(domain.tier, []).append(domain)
            if (parent := self.by_name.get(domain.parent)) is not None:
                parent.children.append(domain)
        self.tiers = {tier: DomainSet(found) for tier, found in sorted(by_tier.items())}
        self.outermost = [domain for domain in self.by_name.values() if domain.parent not in self.by_name]
        self._inside: dict[str, DomainSet] = {}

    @property
    def highest(self) -> int:
        """Return the highest tier; -1 if there are no domains."""
        return max(self.tiers, default=-1)

    def tier_named(self, name: str) -> int | None:
        """Return the tier with this name; None if no domain has it."""
        found = (domain.tier for domain in self.by_name.values() if domain.tier_name == name)
        return max(found, default=None)

    def around(self, rows: Iterable[int]) -> Iterator[Domain]:
        """Yield the domains that contain all of these rows, the smallest first."""
        needed = list(dict.fromkeys(rows))
        domain = self._lowest[needed[0]] if needed else None
        while domain is not None:
            if all(domain.mask[row] for row in needed):
                yield domain
            domain = self.by_name.get(domain.parent)

    def inside(self, domain: Domain | None) -> DomainSet:
        """Return the domains directly inside of a domain; the outermost domains for None."""
        key = "" if domain is None else f"/{domain.name}"
        known = self._inside.get(key)
        if known is None:
            known = self._inside[key] = DomainSet(self.outermost if domain is None else domain.children)
        return known


def topology_of_label(nodes: Nodes, key: str) -> Topology:
    """Return the domains of one label: the nodes with the same value are one domain.

    All labels that no node has share one cache entry, because PodGroups may name any number of labels.
    """
    if not any(node.labels.get(key) for node in nodes.rows):
        key = ""

    def topology() -> Topology:
        values: dict[str, list[int]] = {}
        for node in nodes.rows:
            if value := node.labels.get(key):
                values.setdefault(value, []).append(node.row)
        domains = [
            Domain(value, 0, key, np.array(sorted(rows), dtype=np.int64))
            for value, rows in sorted(values.items())
            if rows
        ]
        return Topology(len(nodes.rows), domains, {})

    return nodes.kept.once(("topology", key), topology)


NOWHERE = Domain("", -1, "", np.zeros(0, dtype=np.int64), mask=np.zeros(1, dtype=np.bool_))
"""A domain without nodes; its mask broadcasts to any number of nodes."""
