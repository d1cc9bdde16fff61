"""Labels, taints and the expressions over them, as Kubernetes matches them (apimachinery's ``labels``,
component-helpers' ``nodeaffinity``).

The one rule: these functions are total. An operator that Kubernetes does not know matches nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..model.nodes import NodeInfo
from ..model.objects import LabelSelector, NodeSelector, NodeSelectorTerm, SelectorRequirement, Taint, Toleration


def requirement_holds(requirement: SelectorRequirement, labels: Mapping[str, str]) -> bool:
    """One ``matchExpressions`` item."""
    values = requirement.values or ()
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compare(requirement.operator, value, values)
    return False


def _compare(operator: str, value: str | None, values: Iterable[str]) -> bool:
    try:
        have, limit = int(value or ""), int(next(iter(values)))
    except (ValueError, StopIteration):
        return False
    return have > limit if operator == "Gt" else have < limit


def selector_matches(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """A label selector; an absent one matches nothing, an empty one everything."""
    if selector is None:
        return False
    return all(labels.get(key) == value for key, value in (selector.match_labels or {}).items()) and all(
        requirement_holds(item, labels) for item in selector.match_expressions or ()
    )


def term_matches(term: NodeSelectorTerm, node: NodeInfo) -> bool:
    """One node selector term; an empty one matches nothing."""
    if not term.match_expressions and not term.match_fields:
        return False
    fields = {"metadata.name": node.name}
    return all(requirement_holds(item, node.labels) for item in term.match_expressions or ()) and all(
        requirement_holds(item, fields) for item in term.match_fields or ()
    )


def node_selector_matches(selector: NodeSelector | None, node: NodeInfo) -> bool:
    """Any of the terms; an absent selector matches every node."""
    return selector is None or any(term_matches(term, node) for term in selector.node_selector_terms)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether a toleration covers a taint; an empty key with ``Exists`` covers all, an empty effect every effect."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return bool(toleration.key) and toleration.operator in ("", "Equal") and toleration.value == taint.value


def untolerated(
    taints: Iterable[Taint] | None, tolerations: Iterable[Toleration] | None, effects: tuple[str, ...]
) -> Taint | None:
    """The first taint with one of ``effects`` that none of the tolerations covers."""
    have = tuple(tolerations or ())
    return next(
        (t for t in taints or () if t.effect in effects and not any(tolerates(item, t) for item in have)),
        None,
    )
