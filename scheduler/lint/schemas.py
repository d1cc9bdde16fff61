"""Judge objects by the schemas by which the API server judges them: strictly, with the nearest name.

1. A kind of ours is judged by its definition (`scheduler/crds`, or the definitions of another scheduler): its schema as
   JSON Schema, its rules in CEL, and the admission policies beside it. A kind of Kubernetes is judged by the schema of
   the official client's model. Other kinds have no schema here.
2. A field that the schema does not declare is refused, as the API server refuses it under strict field validation.
3. The CEL functions of Kubernetes that our definitions use (`sum`, `join`, `quantity`, `isGreaterThan`, `lists.range`)
   are added to the library's.

Import this module where an object is judged, not before: jsonschema, CEL and the client's models take a second.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import cel
import kubernetes.client
import yaml
from jsonschema import Draft7Validator, Draft202012Validator

from ..model.resources import amount_of
from ..policy.source import suggest

Object = Mapping[str, Any]
OURS = Path(__file__).parents[1] / "crds"
_KEYWORDS = frozenset(
    (
        *("type", "properties", "additionalProperties", "items", "required", "enum", "pattern", "anyOf", "oneOf"),
        *("allOf", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties"),
        "maxProperties",
    )
)
"""The keywords of structural schemas that JSON Schema has too."""
_KEEPS_UNKNOWN = "x-kubernetes-preserve-unknown-fields"
_RULES = "x-kubernetes-validations"
_SAYS = "x-schedspec-says"
"""Keyword of our own schemas: what a text that does not match its pattern is not."""
_PRECISE = 1000


class Flaw(NamedTuple):
    """One reason why the API server would refuse an object; an empty path stands for the whole object."""

    path: tuple[str | int, ...]
    text: str
    remedy: str

    @property
    def field(self) -> str:
        """The path as text: `spec.tasks[0].replicas`."""
        parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.path)
        return "".join(parts).lstrip(".") or "the object"


class Definitions:
    """The definitions of a folder: schemas and admission policies by API version and kind."""

    def __init__(self, folder: Path) -> None:
        self._schemas: dict[tuple[str, str], Object] = {}
        self._plurals: dict[tuple[str, str], str] = {}
        self._policies: list[Object] = []
        for file in sorted(folder.glob("*.yaml")):
            for document in yaml.load_all(file.read_text("utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
                self._add(document or {})

    def _add(self, document: Object) -> None:
        spec = document.get("spec") or {}
        if document.get("kind") == "CustomResourceDefinition":
            for version in spec["versions"]:
                key = f"{spec['group']}/{version['name']}", spec["names"]["kind"]
                self._schemas[key] = version["schema"]["openAPIV3Schema"]
                self._plurals[key] = spec["names"]["plural"]
        elif document.get("kind") == "ValidatingAdmissionPolicy":
            self._policies.append(spec)

    def flaws(self, item: Object, old: Object | None = None, operation: str = "CREATE") -> list[Flaw] | None:
        """Return why the API server would refuse an object; None for a kind without a schema.

        Args:
            item: The object as it is written; for a deletion, as it is.
            old: The object before an update or a deletion.
            operation: CREATE, UPDATE or DELETE.
        """
        key = str(item.get("apiVersion", "")), str(item.get("kind", ""))
        schema = self._schemas.get(key)
        if schema is None and (near := [known for known in self._schemas if self._is_near(known, key)]):
            remedy = " or ".join(f"write {version}" for version, _ in near)
            return [Flaw(("apiVersion",), f"the API has no {key[1]} of this version", remedy)]
        if schema is None:
            core = _model_schema(*key)
            known = core is None or operation == "DELETE"
            return (
                (None if core is None else [])
                if known
                else [*_of_model(core, item), *_of_name(item), *_of_kubernetes(item)]
            )
        found = [] if operation == "DELETE" else [*_of_schema(_validator(key, self), item), *_of_name(item)]
        if not found and operation != "DELETE":
            item = _with_defaults(schema, _with_name(item))
            found = list(_broken_rules(schema, item, ()))
        was = item if old is None else _with_defaults(schema, old)
        return found or list(self._denied(key, item, was, operation))

    def complete(self, item: Object) -> Object:
        """Return an object with the defaults that the API server sets; unchanged for a kind without a definition."""
        schema = self._schemas.get((str(item.get("apiVersion", "")), str(item.get("kind", ""))))
        return item if schema is None else _with_defaults(schema, item)

    @staticmethod
    def _is_near(known: tuple[str, str], key: tuple[str, str]) -> bool:
        """Whether a kind is known in another version of its group."""
        return known[1] == key[1] and known[0].partition("/")[0] == key[0].partition("/")[0]

    def json_schema(self, key: tuple[str, str]) -> dict[str, Any]:
        """Return a definition's schema as JSON Schema."""
        found = _json_schema(self._schemas[key])
        found["properties"]["metadata"] = _metadata()
        return found

    def _denied(self, key: tuple[str, str], item: Object, old: Object, operation: str) -> Iterator[Flaw]:
        group, _, version = key[0].rpartition("/")
        for policy in self._policies:
            if any(
                group in rule["apiGroups"]
                and version in rule["apiVersions"]
                and self._plurals[key] in rule["resources"]
                and operation in rule["operations"]
                for rule in policy["matchConstraints"]["resourceRules"]
            ):
                yield from _policy_flaws(policy, item, old)


@functools.cache
def definitions(folder: Path = OURS) -> Definitions:
    """Return the definitions of a folder, read once."""
    return Definitions(folder)


@functools.cache
def _validator(key: tuple[str, str], of: Definitions) -> Any:
    return Draft7Validator(of.json_schema(key))


def _json_schema(node: Object) -> dict[str, Any]:
    """Return a structural schema as JSON Schema, without undeclared fields."""
    found: dict[str, Any] = {}
    for keyword, value in node.items():
        if keyword == "properties":
            found[keyword] = {name: _json_schema(child) for name, child in value.items()}
        elif keyword in ("items", "additionalProperties") and isinstance(value, Mapping):
            found[keyword] = _json_schema(value)
        elif keyword in _KEYWORDS:
            found[keyword] = value
    if "properties" in found and not node.get(_KEEPS_UNKNOWN) and "additionalProperties" not in found:
        found["additionalProperties"] = False
    if node.get("nullable") and "type" in found:
        found["type"] = [found["type"], "null"]
    return found


@functools.cache
def _metadata() -> dict[str, Any]:
    """Return the schema of metadata, which a definition does not describe."""
    return {
        "type": "object",
        "properties": {
            name: {} for name in kubernetes.client.V1ObjectMeta.model_json_schema(by_alias=True)["properties"]
        }
        | {name: _texts(value) for name, value in _TEXTS.items()},
        "additionalProperties": False,
    }


_KEY = {
    "pattern": r"^(?!.{254,}/)([a-z0-9][-a-z0-9.]*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$",
    _SAYS: "is no key",
}
_VALUE = {
    "pattern": "^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$",
    _SAYS: "is no value of a label",
}
_TEXTS: Mapping[str, Mapping[str, str]] = {"labels": _VALUE, "annotations": {}}
"""Maps of texts in metadata, and what their values have to match."""


def _texts(value: Mapping[str, str]) -> dict[str, Any]:
    """Return the schema of labels or annotations."""
    return {
        "type": ["object", "null"],
        "propertyNames": _KEY,
        "additionalProperties": {"type": "string", **value},
    }


@functools.cache
def _model_schema(api_version: str, kind: str) -> Any:
    """Return the validator of a kind of Kubernetes by the client's model; None for any other kind."""
    group, _, version = api_version.rpartition("/")
    if not kind.isidentifier() or ("." in group and not group.endswith(".k8s.io")) or not version.isalnum():
        return None
    model = getattr(kubernetes.client, f"{version.capitalize()}{kind}", None)
    if model is None or not hasattr(model, "model_json_schema"):
        return None
    schema = _without_null(model.model_json_schema(by_alias=True))
    return Draft202012Validator({**schema, "$defs": {**schema.get("$defs", {}), "V1ObjectMeta": _metadata()}})


def _without_null(node: Any) -> Any:
    """Return the schema of a model without its alternatives `null`: a field that is null counts as left out."""
    if isinstance(node, list):
        return [_without_null(child) for child in node]
    if not isinstance(node, dict):
        return node
    kept = [child for child in node.get("anyOf", ()) if child != {"type": "null"}]
    if len(kept) == 1:
        node = {**{key: child for key, child in node.items() if key != "anyOf"}, **kept[0]}
    return {key: _without_null(child) for key, child in node.items()}


def _without_nulls(value: Any) -> Any:
    """Return an object without fields that are null."""
    if isinstance(value, Mapping):
        return {name: _without_nulls(child) for name, child in value.items() if child is not None}
    return [_without_nulls(child) for child in value] if isinstance(value, list) else value


def _of_schema(validator: Any, item: Object) -> Iterator[Flaw]:
    for error in sorted(validator.iter_errors(item), key=lambda found: list(map(str, found.absolute_path))):
        yield from _flaws_of(error)


def _of_model(validator: Any, item: Object) -> Iterator[Flaw]:
    """Yield flaws by a model: quantities may be numbers, though the model declares texts."""
    for error in validator.iter_errors(_without_nulls(item)):
        is_number = error.validator == "type" and isinstance(error.instance, int | float)
        if not is_number or "metadata" in error.absolute_path:
            yield from _flaws_of(error)


def _of_name(item: Object) -> Iterator[Flaw]:
    """Yield the flaw of a name that the API server refuses. Kinds of RBAC have names with other characters."""
    metadata = item.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else ""
    if isinstance(name, str) and name and not _NAME.fullmatch(name) and "rbac" not in str(item.get("apiVersion")):
        text = "write at most 253 lower-case letters, digits, '-' and '.', with a letter or digit at both ends"
        yield Flaw(("metadata", "name"), f"{_short(repr(name))} is no name of an object", text)


def _of_kubernetes(item: Object) -> Iterator[Flaw]:
    """Yield flaws by rules that the API server has beside the schemas of its own kinds."""
    spec, metadata = (part if isinstance(part := item.get(key), Mapping) else {} for key in ("spec", "metadata"))
    name = str(metadata.get("name", ""))
    if item["kind"] == "PriorityClass" and name not in _SYSTEM_CLASSES:
        if name.startswith("system-"):
            yield Flaw(("metadata", "name"), "names with system- belong to Kubernetes", "choose another name")
        if isinstance(value := item.get("value"), int) and value > MOST_PRIORITY:
            yield Flaw(("value",), f"{value} is above {MOST_PRIORITY}, the highest value for users", "lower it")
    if item["kind"] == "PodDisruptionBudget":
        rules = {name: spec[name] for name in ("minAvailable", "maxUnavailable") if spec.get(name) is not None}
        if len(rules) > 1:
            yield Flaw(("spec",), "minAvailable and maxUnavailable exclude each other", "keep one of them")
        for rule, value in rules.items():
            if not (isinstance(value, int) and value >= 0) and not re.fullmatch(r"(100|\d{1,2})%", str(value)):
                text = f"{value!r} is neither a number from 0 nor a percentage from 0% to 100%"
                yield Flaw(("spec", rule), text, "write for example 2 or 50%")

    template = template if isinstance(template := spec.get("template"), Mapping) else {}
    if item["kind"] == "Pod":
        yield from pod_flaws(spec, ("spec",))
    elif isinstance(of_pod := template.get("spec"), Mapping):
        yield from pod_flaws(of_pod, ("spec", "template", "spec"))
    selected = _child(spec, "selector", "matchLabels")
    labels = _child(template, "metadata", "labels")
    if template and (missing := [name for name in selected if selected[name] != labels.get(name)]):
        label = f"{missing[0]}={selected[missing[0]]}"
        text = f"the selector has {label}, and the labels of its pods do not"
        yield Flaw(("spec", "selector", "matchLabels"), text, "write the same label into spec.template.metadata.labels")


def _child(item: Any, *path: str) -> Mapping[str, Any]:
    """Return the mapping at a path; an empty one if there is none."""
    for name in path:
        item = item.get(name) if isinstance(item, Mapping) else None
    return item if isinstance(item, Mapping) else {}


def template_flaws(item: Any, path: tuple[str | int, ...]) -> Iterator[Flaw]:
    """Yield why the API server would refuse pods of an object whose own definition does not judge its pods."""
    if isinstance(item, Mapping) and isinstance(item.get("containers"), list):
        yield from pod_flaws(item, path)
    parts = item.items() if isinstance(item, Mapping) else enumerate(item) if isinstance(item, list) else ()
    for name, part in parts:
        yield from template_flaws(part, (*path, name))


def pod_flaws(spec: Mapping[str, Any], path: tuple[str | int, ...]) -> Iterator[Flaw]:
    """Yield why the API server would refuse requests and limits of a pod. The schema has accepted its form."""
    for kind in ("initContainers", "containers"):
        containers = spec.get(kind)
        for place, container in enumerate(containers if isinstance(containers, list) else ()):
            requests, limits = (_child(container, "resources", name) for name in ("requests", "limits"))
            for name, amount in requests.items():
                field = (*path, kind, place, "resources", "requests", name)
                is_device = "/" in name and "kubernetes.io/" not in name
                if is_device and name not in limits:
                    yield Flaw(field, "a device has a limit, too", f"write the same amount into limits.{name}")
                elif name in limits and _differ(amount, limits[name], is_device=is_device):
                    text = f"{amount} {'is not' if is_device else 'is above'} the limit {limits[name]}"
                    yield Flaw(field, text, "write the same amount" if is_device else "lower it, or raise the limit")


def _differ(request: Any, limit: Any, *, is_device: bool) -> bool:
    """Whether the API server refuses a request beside this limit. Texts that are no amounts have flaws already."""
    try:
        wanted, most = (amount_of(str(amount), _PRECISE) for amount in (request, limit))
    except ValueError:
        return False
    return wanted != most if is_device else wanted > most


_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
MOST_PRIORITY = 1_000_000_000
_SYSTEM_CLASSES = ("system-cluster-critical", "system-node-critical")


def _flaws_of(error: Any) -> Iterator[Flaw]:
    path = tuple(error.absolute_path)
    declared = sorted(error.schema.get("properties", ())) if isinstance(error.schema, Mapping) else []
    if error.validator == "additionalProperties" and isinstance(error.instance, Mapping) and declared:
        for name in sorted(error.instance.keys() - set(declared)):
            yield Flaw((*path, name), "unknown field", suggest(name, declared))
    elif error.validator == "required":
        yield Flaw((*path, error.message.split("'")[1]), "Required value", "add it")
    elif error.validator == "pattern" and "KMGTPE" in error.validator_value:
        yield Flaw(path, f"{_short(repr(error.instance))} is not a quantity", "write for example 2, 500m, 1.5 or 8Gi")
    elif error.validator == "pattern" and _SAYS in error.schema:
        text = "write at most 63 letters, digits and any of - _ . with a letter or digit at both ends"
        yield Flaw(path, f"{_short(repr(error.instance))} {error.schema[_SAYS]}", text)
    elif error.validator in ("anyOf", "pattern"):
        yield Flaw(path, f"{_short(repr(error.instance))} does not fit", "correct it")
    else:
        yield Flaw(path, _short(error.message), "correct it")


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}…"


def _with_name(item: Object) -> Object:
    """Return an object with the name that the API server makes of `generateName` before it evaluates rules."""
    metadata = item.get("metadata")
    if not isinstance(metadata, Mapping) or metadata.get("name") or not metadata.get("generateName"):
        return item
    return {**item, "metadata": {**metadata, "name": f"{metadata['generateName']}12345"}}


def _with_defaults(schema: Object, value: Any) -> Any:
    """Return a value with the defaults of its schema, which the API server sets before it evaluates rules."""
    if isinstance(value, list):
        return [_with_defaults(schema.get("items") or {}, child) for child in value]
    if not isinstance(value, Mapping):
        return value
    properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
    missing = {name: part["default"] for name, part in properties.items() if "default" in part and name not in value}
    below = others if isinstance(others, Mapping) else {}
    return {name: _with_defaults(properties.get(name, below), child) for name, child in {**missing, **value}.items()}


def _broken_rules(schema: Object, value: Any, path: tuple[str | int, ...]) -> Iterator[Flaw]:
    """Yield the rules of a schema and its parts that a value breaks."""
    for rule in schema.get(_RULES) or ():
        if _evaluate(rule["rule"], self=value) is not True:
            message = rule.get("message") or _evaluate(rule.get("messageExpression", ""), self=value) or rule["rule"]
            shown = f"{value}: " if isinstance(value, int | float | str) else ""
            yield _as_flaw((*path, *filter(None, rule.get("fieldPath", "").split("."))), f"{shown}{message}")
    if isinstance(value, Mapping):
        others = schema.get("additionalProperties")
        for name, child in value.items():
            inner = (schema.get("properties") or {}).get(name) or (others if isinstance(others, Mapping) else None)
            if inner:
                yield from _broken_rules(inner, child, (*path, name))
    elif isinstance(value, list) and "items" in schema:
        for number, child in enumerate(value):
            yield from _broken_rules(schema["items"], child, (*path, number))


def _policy_flaws(policy: Object, item: Object, old: Object) -> Iterator[Flaw]:
    known: dict[str, Any] = {"object": item, "oldObject": old, "variables": {}}
    for variable in policy.get("variables") or ():
        known["variables"] = {**known["variables"], variable["name"]: _evaluate(variable["expression"], **known)}
    for rule in policy["validations"]:
        if _evaluate(rule["expression"], **known) is not True:
            message = rule.get("message") or _evaluate(rule.get("messageExpression", ""), **known)
            yield _as_flaw((), str(message))


def _as_flaw(path: tuple[str | int, ...], message: str) -> Flaw:
    """Split the message of a rule into text and remedy, without the field, which only the message may name."""
    text, _, remedy = message.partition("; ")
    named = re.match(r"((?:spec|metadata)\.[\w.]+)(?::| is)", text)
    path = path or (tuple(named[1].split(".")) if named else ())
    field = Flaw(path, "", "").field
    return Flaw(path, text.removeprefix(f"{field}: ").removeprefix(f"{field} "), remedy or "correct it")


def _evaluate(expression: str, **variables: Any) -> Any:
    """Return the value of a CEL expression; None if it cannot be evaluated."""
    if not expression:
        return None
    context = cel.Context()
    for name, value in variables.items():
        context.add_variable(name, value)
    context.add_variable("lists", 0)
    for name, function in _FUNCTIONS.items():
        context.add_function(name, function)
    try:
        return _program(expression).execute(context)
    except (ValueError, TypeError, KeyError, RuntimeError):
        return None


@functools.cache
def _program(expression: str) -> Any:
    return cel.compile(expression)


def _is_greater(one: str, other: str) -> bool:
    return amount_of(one, _PRECISE) > amount_of(other, _PRECISE)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sum": sum,
    "join": lambda texts, between="": str(between).join(map(str, texts)),
    "quantity": str,
    "isGreaterThan": _is_greater,
    "range": lambda _lists, end: list(range(int(end))),
}
