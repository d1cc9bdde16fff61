"""Match labels with selectors as Kubernetes does.

Semantics: apimachinery's `labels` and component-helpers' `nodeaffinity`.

The functions never raise: an operator that Kubernetes does not define matches nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from .objects import LabelSelector, SelectorRequirement

_INTEGER = re.compile(r"[+-]?[0-9]{1,63}")
"""A number as Go's `strconv.ParseInt` accepts it, in a label's value; `int` also accepts `1_000` and spaces."""
_INT64 = range(-(1 << 63), 1 << 63)
"""The numbers that Go's `strconv.ParseInt` accepts."""


def requirement_holds(requirement: SelectorRequirement, labels: Mapping[str, str]) -> bool:
    """Whether labels meet one `matchExpressions` item."""
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
    number, limit = as_integer(value or ""), as_integer(next(iter(values), ""))
    if number is None or limit is None:
        return False
    return number > limit if operator == "Gt" else number < limit


def as_integer(text: str) -> int | None:
    """Return the integer that a label's value is for `Gt` and `Lt`; None if it is none."""
    return number if _INTEGER.fullmatch(text) and (number := int(text)) in _INT64 else None


def selector_matches(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Whether a label selector matches; an absent one matches nothing, an empty one everything."""
    if selector is None:
        return False
    return all(labels.get(key) == value for key, value in (selector.match_labels or {}).items()) and all(
        requirement_holds(item, labels) for item in selector.match_expressions or ()
    )
