"""Selectors over labels, of nodes and of pods."""

from __future__ import annotations

import msgspec

from .meta import Object


class SelectorRequirement(Object):
    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class NodeSelectorTerm(Object):
    match_expressions: list[SelectorRequirement] | None = None
    match_fields: list[SelectorRequirement] | None = None


class NodeSelector(Object):
    node_selector_terms: list[NodeSelectorTerm] = msgspec.field(default_factory=list)


class LabelSelector(Object):
    match_labels: dict[str, str] | None = None
    match_expressions: list[SelectorRequirement] | None = None
