"""Validate the configuration file of a Kind cluster before a container starts. Errors name file, line and field.

kind validates everything else; its message is passed on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from ..protocol import SettingsError

CARDS_LABEL = "nvidia.com/gpu.count"
"""Label with the number of cards that a node advertises; NVIDIA's GPU operator uses the same name."""
CARDS_RESOURCE = "nvidia.com/gpu"

_API = "kind.x-k8s.io/v1alpha4"
_ROLES = ("control-plane", "worker")


@dataclass(frozen=True, slots=True)
class KindFile:
    path: Path
    roles: tuple[str, ...]
    """One per node, in the file's order."""

    def __str__(self) -> str:
        return f"{self.path.name}: {len(self.roles)} node{'s' if len(self.roles) > 1 else ''}"


def read(path: Path) -> KindFile:
    """Read and validate a configuration file.

    Raises:
        SettingsError: kind could not create a cluster from the file, or a node's number of cards is invalid.
    """
    try:
        whole = yaml.compose(text := path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"the configuration of the Kind cluster cannot be read: {getattr(error, 'strerror', None) or error}",
            str(path),
            "name a file that exists: --kind-config FILE (kind-config/ has some)",
        ) from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise SettingsError(f"the file is not YAML: {error.problem}", f"{path}:{line}", "repair the file") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        what = f"the file is not YAML: character #x{error.character:04x}: {error.reason}"
        raise SettingsError(what, f"{path}:{line}", "remove this character") from error
    fields = _fields(whole) if isinstance(whole, MappingNode) else {}
    for field, wanted in (("kind", "Cluster"), ("apiVersion", _API)):
        node = fields.get(field, whole)
        if not isinstance(node, ScalarNode) or node.value != wanted:
            raise _invalid(path, node, field, f"must be {wanted}")
    nodes = fields.get("nodes")
    if nodes is None:
        return KindFile(path, ("control-plane",))  # kind's default
    if not isinstance(nodes, SequenceNode) or not nodes.value:
        raise _invalid(path, nodes, "nodes", "must be a list of nodes")
    roles = tuple(_role(path, node, f"nodes[{index}]") for index, node in enumerate(nodes.value))
    if "control-plane" not in roles:
        raise _invalid(path, nodes, "nodes", "has no node with role control-plane")
    return KindFile(path, roles)


def _role(path: Path, node: Node, where: str) -> str:
    if not isinstance(node, MappingNode):
        raise _invalid(path, node, where, "must be a mapping with a role")
    fields = _fields(node)
    role = fields.get("role")
    if role is not None and (not isinstance(role, ScalarNode) or role.value not in _ROLES):
        raise _invalid(path, role, f"{where}.role", f"must be one of: {', '.join(_ROLES)}")
    labels = fields.get("labels")
    if isinstance(labels, MappingNode):
        cards = _fields(labels).get(CARDS_LABEL)
        if cards is not None and not (isinstance(cards, ScalarNode) and re.fullmatch(r"[1-9]\d{0,5}", cards.value)):
            raise _invalid(path, cards, f"{where}.labels[{CARDS_LABEL}]", "must be a number of cards, 1 or more")
        if isinstance(cards, ScalarNode) and cards.tag != "tag:yaml.org,2002:str":
            raise _invalid(path, cards, f"{where}.labels[{CARDS_LABEL}]", f'must be a string: "{cards.value}"')
    return role.value if isinstance(role, ScalarNode) else "control-plane"


def _fields(node: MappingNode) -> dict[str, Node]:
    return {key.value: value for key, value in node.value if isinstance(key, ScalarNode)}


def _invalid(path: Path, node: Node | None, field: str, rule: str) -> SettingsError:
    line = node.start_mark.line + 1 if node is not None else 1
    value = f" and is {node.value!r}" if isinstance(node, ScalarNode) else ""
    return SettingsError(f"{field} {rule}{value}", f"{path}:{line}", "repair the file (kind-config/ has examples)")
