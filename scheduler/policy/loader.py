"""Load a policy file in the format of Volcano's `volcano-scheduler.conf`, or reject it with line and field.

The one rule: no part of a file is ignored silently. Each unsupported part is an error with its place and a remedy, and
all errors of a file are reported at once. (Volcano ignores most of them, such as a misspelt switch or an unknown
action, and crashes on the others.)

Users, ConfigMaps and pull requests supply the file, so only a regular file of at most `LARGEST` bytes in UTF-8 is read:
a FIFO cannot block the reader, and an endless device cannot fill its memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ..model.documents import compose
from ..model.input_files import open_input
from .model import PluginOption, Policy
from .schema import (
    ACTIONS,
    BOOL,
    MAPPING,
    MISSING_ACTIONS,
    MISSING_ARGUMENTS,
    MISSING_PLUGINS,
    PLUGINS,
    RETIRED_SWITCHES,
    SCORING_ONLY,
    SWITCHES,
    TEXT,
    Argument,
)
from .source import PolicyError, PolicySource, Problem, suggest

__all__ = ["Document", "PolicyError", "Problem", "load_policy", "read_document", "read_policy"]

LARGEST = 1 << 20
"""Maximum bytes of a policy file."""


class UnreadablePolicyError(PolicyError):
    """The policy file cannot be read."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(str(path), ())
        self.args = (f"{path}: cannot read the policy file: {why}; name a readable file with --policy",)


def read_policy(path: Path) -> str:
    """Return the text of a policy file.

    Raises:
        UnreadablePolicyError: The path is not a regular file, or the file is too large or not UTF-8.
    """

    def problem(why: str) -> UnreadablePolicyError:
        return UnreadablePolicyError(path, why)

    try:
        with open_input(path) as file:
            data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise problem(f"it is larger than {LARGEST:,} bytes")
        return data.decode()
    except OSError as error:
        raise problem(error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise problem("not UTF-8") from error


WRAPPER = "default_scheduler_conf"
"""Key under which a cloud provider's add-on stores the file."""
_FIELDS = ("actions", "tiers", "configurations", "metrics")
_OVERRIDE = "scheduler_config_override"
"""Key of Volcano's chart whose value is the text of a policy."""


@dataclass(frozen=True, slots=True)
class Document:
    """A policy with the positions of its parts, for lint.

    Attributes:
        lines: Line of each field (`tiers[0].plugins[1].enableJobOrder`).
        places: Plugin → its field. Key `action:<name>` → the field of that action's configuration.
        left_out: Plugins that are accepted but have no effect here, with their fields.
    """

    policy: Policy
    lines: Mapping[str, int]
    places: Mapping[str, str]
    left_out: Mapping[str, str]
    retired: tuple[str, ...] = ()

    def line(self, field: str) -> int:
        """Return the line of a field, or of the closest part of the file that contains it."""
        while field and field not in self.lines:
            field = re.sub(r"(^|\.)[^.\[\]]*$|\[\d+\]$", "", field)
        return self.lines.get(field, 1)


DEFAULT_TEXT = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""
"""Volcano's default policy."""


def load_policy(text: str, source: str) -> Policy:
    """Parse a policy file; `source` is its name in errors.

    Raises:
        PolicyError: The file is invalid; the error has all problems.
    """
    return read_document(text, source).policy


def read_document(text: str, source: str) -> Document:
    """Parse a policy file like `load_policy`, and keep the positions of its parts."""
    return _Reader(source).read(text)


def plain_text(text: str) -> str:
    """Return the policy file in an object that contains one; any other text unchanged. The text must be loadable."""
    (node,) = compose(text)
    keys = {key.value for key, _ in node.value} if isinstance(node, yaml.MappingNode) else set()
    inside = () if keys & {*_FIELDS, WRAPPER} else list(texts_in(node))
    return str(inside[0][1].value) if inside else text


class _Reader:
    def __init__(self, name: str) -> None:
        self.source = PolicySource(name)
        self.places: dict[str, str] = {}
        self.left_out: dict[str, str] = {}
        self.retired: list[str] = []

    def read(self, text: str) -> Document:
        root = self._root(text)
        # `metrics` has the sources of measured load; it is only checked, because no plugin of ours uses it
        if (metrics := root.get("metrics")) is not None:
            self.source.value(metrics, "metrics", Argument(MAPPING))
        policy = Policy(
            self._actions(root.get("actions")),
            self._tiers(root.get("tiers")),
            self._configurations(root.get("configurations")),
        )
        self._check_together(policy)
        if self.source.problems:
            raise PolicyError(self.source.name, self.source.problems)
        return Document(policy, self.source.lines, self.places, self.left_out, tuple(self.retired))

    def _root(self, text: str) -> dict[str, yaml.Node]:
        node = self.source.compose(text)
        root = dict(self.source.entries(node, ""))
        if not root.keys() & {*_FIELDS, WRAPPER} and (inside := list(texts_in(node))):
            if len(inside) > 1:
                names = ", ".join(key for key, _ in inside)
                self.source.refuse(inside[1][1], inside[1][0], "", f"several policies: {names}", "keep one of them")
                raise PolicyError(self.source.name, self.source.problems)
            root = dict(self.source.entries(self.source.inner(inside[0][1]), ""))
        elif isinstance(kind := root.get("kind"), yaml.ScalarNode):
            remedy = f"name a ConfigMap, or a chart's values, with a key *.conf or *{_OVERRIDE}"
            self.source.refuse(kind, "kind", kind.value, "this object contains no policy", remedy)
            raise PolicyError(self.source.name, self.source.problems)
        if WRAPPER in root:  # the other keys belong to the add-on that wraps the file
            root = dict(self.source.entries(root[WRAPPER], ""))
        for name in [name for name in root if name not in _FIELDS]:
            self.source.refuse(root.pop(name), name, "", "no field of a policy", suggest(name, _FIELDS))
        return root

    # -------------------------------------------------------------------------------------------------------- actions

    def _actions(self, node: yaml.Node | None) -> tuple[str, ...]:
        example = 'write for example actions: "enqueue, allocate, backfill"'
        if node is None:
            if not self.source.problems:
                self.source.note(1, "actions", "", "missing", example)
            return ()
        text = self.source.value(node, "actions", Argument(TEXT))
        if text is None:
            return ()
        names = [name.strip() for name in text.split(",")]
        if not any(names):
            self.source.refuse(node, "actions", "", "names no action", example)
            return ()
        if "" in names:
            problem = "has an empty name between commas, and Volcano refuses the whole file"
            self.source.refuse(node, "actions", text, problem, "remove the comma")
            names = [name for name in names if name]
        for name in dict.fromkeys(names):
            self._check_action(node, "actions", name)
            if names.count(name) > 1:
                self.source.refuse(node, "actions", name, "named twice", "name each action once")
        return tuple(names)

    def _check_action(self, node: yaml.Node, field: str, name: str) -> bool:
        if name in ACTIONS:
            return True
        if name in MISSING_ACTIONS:
            text = "an action of Volcano that this scheduler does not support"
            self.source.refuse(node, field, name, text, MISSING_ACTIONS[name])
        else:
            self.source.refuse(node, field, name, "no such action", suggest(name, ACTIONS))
        return False

    def _configurations(self, node: yaml.Node | None) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for field, item in self.source.items(node, "configurations"):
            entries = dict(self.source.entries(item, field))
            name = self._name(item, entries, field)
            if not name or not self._check_action(item, f"{field}.name", name):
                continue
            if name in found:
                self.source.refuse(item, f"{field}.name", name, "configured twice", "keep one")
            self.places[f"action:{name}"] = field
            arguments, rules = entries.get("arguments"), ACTIONS[name]
            found[name] = self._arguments(arguments, f"{field}.arguments", rules.get, rules)
            for other in entries.keys() - {"name", "arguments"}:
                text = "no field of a configuration"
                self.source.refuse(entries[other], f"{field}.{other}", "", text, "write name and arguments")
        return found

    # -------------------------------------------------------------------------------------------------------- plugins

    def _tiers(self, node: yaml.Node | None) -> tuple[tuple[PluginOption, ...], ...]:
        tiers: list[tuple[PluginOption, ...]] = []
        for field, tier in self.source.items(node, "tiers"):
            entries = dict(self.source.entries(tier, field))
            for other in entries.keys() - {"plugins"}:
                text = "no field of a tier"
                self.source.refuse(
                    entries[other], f"{field}.{other}", "", text, "a tier holds plugins and nothing else"
                )
            if "plugins" not in entries and isinstance(tier, yaml.MappingNode):
                self.source.refuse(tier, field, "", "a tier without plugins", "write plugins: and one item a plugin")
            items = self.source.items(entries.get("plugins"), f"{field}.plugins")
            options = [self._plugin(item, inner) for inner, item in items]
            tiers.append(tuple(option for option in options if option is not None))
        return tuple(tiers)

    def _plugin(self, node: yaml.Node, field: str) -> PluginOption | None:
        entries = dict(self.source.entries(node, field))
        name = self._name(node, entries, field)
        if not name or not self._check_plugin(node, field, name):
            return None
        if name in self.places:
            self.source.refuse(node, field, name, f"named before, at {self.places[name]}", "name each plugin once")
        self.places.setdefault(name, field)
        rule = PLUGINS[name]
        known = (*rule.arguments, *(f"{prefix}<name>" for prefix in rule.families))
        arguments = self._arguments(entries.pop("arguments", None), f"{field}.arguments", rule.argument, known)
        switches: dict[str, bool] = {}
        for key, value in entries.items():
            inner = f"{field}.{key}"
            if key in SWITCHES:
                if (setting := self.source.value(value, inner, Argument(BOOL))) is not None:
                    switches[key] = setting
            elif key in RETIRED_SWITCHES:
                self.retired.append(inner)
            elif rule.argument(key) is not None:
                self.source.refuse(value, inner, "", "an argument, not a switch", "move it into arguments")
            elif key != "name":
                meant = _MEANT.get(key) or suggest(key, (*SWITCHES, "arguments"))
                self.source.refuse(value, inner, "", "no such switch", meant)
        return PluginOption(name, switches, arguments)

    def _check_plugin(self, node: yaml.Node, field: str, name: str) -> bool:
        if name in PLUGINS:
            return True
        if name in SCORING_ONLY:
            self.left_out[name] = field
        elif name in MISSING_PLUGINS:
            why, remedy = MISSING_PLUGINS[name]
            text = f"a plugin of Volcano that this scheduler does not support: {why}"
            self.source.refuse(node, f"{field}.name", name, text, remedy)
        else:
            self.source.refuse(node, f"{field}.name", name, "no such plugin", suggest(name, PLUGINS))
        return False

    def _name(self, node: yaml.Node, entries: Mapping[str, yaml.Node], field: str) -> str:
        if "name" in entries:
            return self.source.value(entries["name"], f"{field}.name", Argument(TEXT)) or ""
        if isinstance(node, yaml.MappingNode):
            self.source.refuse(node, field, "", "has no name", "write name: and the plugin's name")
        return ""

    def _arguments(
        self, node: yaml.Node | None, field: str, rule_of: Callable[[str], Argument | None], known: Iterable[str]
    ) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in self.source.entries(node, field):
            rule = rule_of(name)
            if rule is None and (missing := _missing_argument(name)) is not None:
                self.source.refuse(value, f"{field}.{name}", "", f"not supported: {missing[0]}", missing[1])
            elif rule is None:
                self.source.refuse(value, f"{field}.{name}", "", "no such argument", suggest(name, known))
            elif (read := self.source.value(value, f"{field}.{name}", rule)) is not None:
                found[name] = read
        return found

    def _check_together(self, policy: Policy) -> None:
        rivals = [name for name in self.places if name in PLUGINS and PLUGINS[name].decides_queues]
        for name in rivals[1:]:
            text = f"not together with {rivals[0]}: only one plugin may decide the shares of queues"
            self._refuse_plugin(name, text, "keep one of them")
        for option in (option for tier in policy.tiers for option in tier):
            for one, other in PLUGINS[option.name].exclusive:
                if option.arguments.get(one) and option.arguments.get(other):
                    self._refuse_plugin(option.name, f"not both {one} and {other}", "set only one of them to true")
            for switch, (text, remedy) in PLUGINS[option.name].refused.items():
                if option.enabled(switch):
                    self._refuse_plugin(option.name, text, remedy)

    def _refuse_plugin(self, name: str, text: str, remedy: str) -> None:
        field = self.places[name]
        self.source.note(self.source.lines[field], f"{field}.name", name, text, remedy)


_MEANT = {
    "enablePreemption": "did you mean enablePreemptable?",
    "enablePreempt": "did you mean enablePreemptable?",
    "enableReclaim": "did you mean enableReclaimable?",
    "enableAllocatable": "did you mean enabledAllocatable?",
    "overcommit-factor": "move it into arguments of the plugin overcommit",
}
"""Switches that users invent → what they mean, where the nearest spelling is another switch."""


def texts_in(node: yaml.Node) -> Iterator[tuple[str, yaml.ScalarNode]]:
    """Yield key and text of each policy in a ConfigMap, a chart's values, a HelmRelease, or a List of such objects."""
    children = node.value if isinstance(node, yaml.SequenceNode) else ()
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        name = str(key.value)
        if isinstance(value, yaml.ScalarNode) and name.endswith((".conf", _OVERRIDE)) and value.value.strip():
            yield name, value
        children = (*children, value)
    for child in children:
        yield from texts_in(child)


def _missing_argument(name: str) -> tuple[str, str] | None:
    """Return why an argument of Volcano is not supported, and the remedy; None for a name that Volcano lacks too."""
    return next((why for known, why in MISSING_ARGUMENTS.items() if f"{name}.".startswith(f"{known}.")), None)
