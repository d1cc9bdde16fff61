"""Report names of resources without effect, in a policy and in queues: misspelt names, or names that no node has.

If the manifest has nodes, they decide which names exist. Otherwise only near misses of common names are reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches

from ..model.resources import CPU, MEMORY, lacks_unit, render_amount
from ..policy.loader import Document
from .objects import LintFinding, Manifest

COMMON = (CPU, MEMORY, "pods", "nvidia.com/gpu", "amd.com/gpu", "huawei.com/Ascend910", "ephemeral-storage")
"""Resources for which a similar name is reported as a misspelling."""
NATIVE = (CPU, MEMORY, "pods", "ephemeral-storage")
"""Resources that Kubernetes itself names, beside pages of memory."""
ALIKE = 0.85
"""Minimum similarity of two names, from 0 to 1, that counts as a misspelling."""
_LIST = "binpack.resources"
_WEIGHT = "binpack.resources."


def resource_findings(document: Document, source: str, manifest: Manifest) -> list[LintFinding]:
    """Return the findings on the resources that binpack names."""
    option = document.policy.plugin("binpack")
    if option is None:
        return []
    place = f"{document.places['binpack']}.arguments."
    listed = [name for part in str(option.arguments.get(_LIST, "")).split(",") if (name := part.strip())]
    weighted = [name.removeprefix(_WEIGHT) for name in option.arguments if name.startswith(_WEIGHT)]
    found = [
        *((_LIST, text, remedy) for name in listed for text, remedy in _unknown(name, manifest)),
        *((_WEIGHT + name, *_not_listed(name, listed)) for name in weighted if name not in listed),
    ]
    return [
        LintFinding(source, document.line(place + field), place + field, text, remedy) for field, text, remedy in found
    ]


def unknown_amounts(manifest: Manifest) -> Iterator[tuple[str, str, str, str]]:
    """Yield queue, field, text and remedy for each amount of a resource that no pod can hold, or without a unit."""
    for name, queue in manifest.queues.items():
        amounts = (
            ("guarantee.resource", queue.guarantee),
            ("deserved", queue.deserved),
            ("capability", queue.capability),
        )
        for field, given in amounts:
            for resource, amount in given.items():
                for text, remedy in _unknown(resource, manifest):
                    yield name, f"spec.{field}.{resource}", text, remedy
                if lacks_unit(resource, amount):
                    text = f"{render_amount(resource, amount)} is an amount of bytes, which is hardly meant"
                    yield name, f"spec.{field}.{resource}", text, "write a unit, for instance 8Gi"


def _unknown(name: str, manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Yield the problem with a name in the list, if any."""
    has = manifest.total
    if name in (CPU, MEMORY) or (has is not None and has.get(name)):
        return
    near = _nearest(name, COMMON if has is None else has)
    if has is not None:
        yield f"no node has {name}: it does not count", near or "remove it"
    elif name not in COMMON and (near or not may_be_of_a_node(name)):
        full = next((known for known in COMMON if known.endswith(f"/{name}")), "")
        remedy = near or (f"did you mean {full}?" if full else "write its whole name, such as nvidia.com/gpu")
        yield f"{name} is hardly a resource of a node: it does not count", remedy


def may_be_of_a_node(name: str) -> bool:
    """Whether a node may have a resource of this name: a native one, or one with the domain of its vendor."""
    return "/" in name or name in NATIVE or name.startswith("hugepages-")


def _not_listed(name: str, listed: list[str]) -> tuple[str, str]:
    """Return the problem with the weight of a resource that the list does not name."""
    near = _nearest(name, listed)
    return f"{_LIST} does not name {name}: the weight has no effect", near or f"add {name} to {_LIST}"


def _nearest(name: str, names: Iterable[str]) -> str:
    close = get_close_matches(name, list(names), n=1, cutoff=ALIKE)
    return f"did you mean {close[0]}?" if close else ""
