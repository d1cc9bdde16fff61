"""Derive from the scheduler's calls which permissions RBAC must grant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.support.live.proxy import Call

_PATH = re.compile(
    r"^/(?:api/v1|apis/(?P<group>[^/]+)/[^/]+)(?:/namespaces/(?P<namespace>[^/]+)(?=/[^/]+))?"
    r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>[^/]+))?$"
)
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True, order=True)
class Permission:
    """One verb on one resource (`pods/binding`) of one API group."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{'.' if self.group else ''}{self.group}"


def needed(calls: Iterable[Call]) -> set[Permission]:
    """Return the permissions that the calls need."""
    found = set()
    for call in calls:
        parsed = _PATH.match(call.path)
        assert parsed is not None, f"not a path of a resource: {call.path}"
        plural, sub = parsed["plural"], parsed["sub"]
        if call.method == "GET":
            verb = "get" if parsed["name"] else "watch" if call.is_watch else "list"
        else:
            verb = _VERBS[call.method]
        if verb == "patch" and "fieldManager=" in call.query and not sub:
            found.add(Permission(parsed["group"] or "", plural, "create"))  # an apply creates a missing object
        found.add(Permission(parsed["group"] or "", f"{plural}/{sub}" if sub else plural, verb))
    return found


def granted(file: Path, account: str) -> set[Permission]:
    """Return the permissions that a manifest's roles grant to a service account."""
    documents = list(yaml.safe_load_all(file.read_text()))
    roles = {
        (document["roleRef"]["kind"], document["roleRef"]["name"])
        for document in documents
        if any(subject["name"] == account for subject in document.get("subjects", ()))
    }
    return {
        Permission(group, resource, verb)
        for document in documents
        if (document["kind"], document["metadata"]["name"]) in roles
        for rule in document["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
