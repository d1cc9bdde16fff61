"""Render templates into objects: Jinja, strict about variables, then YAML. Errors name file and line.

The one rule: a value is data. `{{ … }}` writes one quoted YAML value (JSON's scalars, lists and maps), so that no value
can end its field or begin another. Only the template's own text is structure.

Besides their parameters, templates can use `namespace`, `scheduler_name`, `image`, `configuration` (of the scheduler,
if any), and `given()`, which returns all of them as a dict.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import yaml
from jinja2.bccache import Bucket
from markupsafe import Markup
from yaml.constructor import SafeConstructor

from ..api.errors import TemplateError
from ..gherkin import tables
from ..terminal import short_path

Object = dict[str, Any]

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_QUOTED = re.compile(r"""[\w"'-]\{\{|\}\}[\w"'-]""")
_QUOTED_HINT = (
    "  a value is quoted already: write {{ name }} without quotes, and {{ name ~ '-suffix' }} for a longer one\n"
)


@dataclass(frozen=True, slots=True)
class Rendered:
    """One object from a template."""

    object: Object
    template: Path
    text: str
    """The whole rendered template."""
    node: yaml.nodes.Node
    """Position of each field in `text`."""

    def line_of(self, field: str) -> int | None:
        """Return the line of a field (`spec.tasks[0].replicas`), or of its nearest ancestor."""
        node, line = self.node, None
        for part in field.replace("[", ".").replace("]", "").split("."):
            found = _child(node, part)
            if found is None:
                break
            node, line = found
        return line

    def excerpt(self, field: str) -> str:
        """Return the part of the template that wrote `field`."""
        line = self.line_of(field)
        if line is None:
            return f"{short_path(self.template)}"
        return f"{short_path(self.template)}, rendered line {line}: {self.text.splitlines()[line - 1].strip()}"


class _Compiled(jinja2.BytecodeCache):
    """Compiled templates of this process. Each scenario has its own environment, all have the same templates."""

    def __init__(self) -> None:
        self._known: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if bucket.key in self._known:
            bucket.bytecode_from_string(self._known[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._known[bucket.key] = bucket.bytecode_to_string()


_COMPILED = _Compiled()


def _nodes_of(text: str) -> list[yaml.nodes.Node]:
    """Return the documents of a text that are not empty. Raises yaml.YAMLError."""
    try:
        documents = list(yaml.compose_all(text, _LOADER))
    except yaml.YAMLError:
        documents = list(yaml.compose_all(text, yaml.SafeLoader))  # the error of this loader is more detailed
    return [node for node in documents if node is not None and node.tag != "tag:yaml.org,2002:null"]


class Templates:
    """The templates of several folders; the first folder that has a name counts. All templates can use `common`.

    Policies are in folders of their own and in the subfolders `policies/`.
    """

    def __init__(self, folders: Sequence[Path], common: Mapping[str, object], policies: Sequence[Path] = ()) -> None:
        self.folders, self.common = tuple(folders), common
        self.policies = (*policies, *(folder / "policies" for folder in folders))
        self._environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(self.folders),
            undefined=jinja2.StrictUndefined,
            autoescape=True,  # results of our macros and filters are marked as safe, everything else is not
            finalize=_value,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            bytecode_cache=_COMPILED,
        )
        self._environment.globals.update(common)
        self._environment.globals["given"] = jinja2.pass_context(lambda context: dict(context.get_all()))
        self._environment.filters["yaml"] = _inline_yaml
        self._environment.filters["seconds"] = seconds

    def render(self, name: str, parameters: Mapping[str, object]) -> list[Rendered]:
        """Render `name`.yaml.j2.

        Raises:
            TemplateError: the template is missing or invalid.
        """
        path = _first(self.folders, f"{name}.yaml.j2")
        text = self._text(path, parameters)
        try:
            nodes = _nodes_of(text)
            objects = [SafeConstructor().construct_document(node) for node in nodes]
        except yaml.YAMLError as problem:
            hint = _QUOTED_HINT if _QUOTED.search(self._source(path)) else ""
            raise TemplateError(
                f"{short_path(path)} does not render to valid YAML:\n  {problem}\n{hint}{_numbered(text)}"
            ) from None
        for obj in objects:
            if not isinstance(obj, dict) or not {"apiVersion", "kind", "metadata"} <= obj.keys():
                raise TemplateError(
                    f"{short_path(path)} produces an object without apiVersion, kind or metadata: {obj!r}"
                )
        return [Rendered(obj, path, text, node) for obj, node in zip(objects, nodes, strict=True)]

    def policy(self, name: str) -> str:
        """Return the text of a policy.

        Raises:
            TemplateError: the policy does not exist.
        """
        path = _first(self.policies, f"{name}.yaml")
        if not path.is_file():
            raise TemplateError(f"there is no policy {path.name}; there are: {_files_in(self.policies)}")
        return path.read_text("utf-8")

    def _source(self, path: Path) -> str:
        """Return the template and all templates that it may include, as written."""
        parts = [path, *(part for folder in self.folders for part in sorted(folder.glob("_*.j2")))]
        return "\n".join(part.read_text("utf-8") for part in parts)

    def _text(self, path: Path, parameters: Mapping[str, object]) -> str:
        try:
            return self._environment.get_template(path.name).render(parameters)
        except jinja2.TemplateNotFound:
            raise TemplateError(f"there is no template {path.name}; there are: {_files_in(self.folders)}") from None
        except jinja2.TemplateSyntaxError as problem:
            raise TemplateError(f"{short_path(path)}:{problem.lineno}: {problem.message}") from None
        except jinja2.UndefinedError as problem:
            given = ", ".join(sorted(parameters)) or "none"
            raise TemplateError(f"{_place(problem, path)}: {problem.message}\n  given: {given}") from None
        except TemplateError as problem:  # from one of our filters
            raise TemplateError(f"{_place(problem, path)}: {problem}") from None
        except Exception as problem:
            raise TemplateError(f"{_place(problem, path)}: {type(problem).__name__}: {problem}") from problem


def seconds(duration: str) -> float:
    """Convert a duration such as `1m30s` or `500ms` to seconds.

    Raises:
        TemplateError: the text is not a duration.
    """
    try:
        return tables.seconds(duration)
    except ValueError:
        raise TemplateError(f"{duration!r} is not a duration: write, for instance, 500ms or 2s") from None


def _place(problem: BaseException, path: Path) -> str:
    """Return file and line of the innermost template, which may be included by `path`."""
    place, trace = f"{short_path(path)}:0", problem.__traceback__
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        if file.suffix == ".j2":
            place = f"{short_path(file)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _child(node: yaml.nodes.Node, part: str) -> tuple[yaml.nodes.Node, int] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == part:
                return value, key.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode) and part.isdigit() and int(part) < len(node.value):
        child = node.value[int(part)]
        return child, child.start_mark.line + 1
    return None


def _value(value: object) -> Markup | jinja2.Undefined:
    """Return the text that `{{ value }}` writes: a macro's result unchanged, any other value as one YAML value."""
    if isinstance(value, Markup | jinja2.Undefined):
        return value
    return _inline_yaml(value)


class _Dumper(yaml.SafeDumper):
    """YAML with quoted texts, so that no text is read as another type."""


def _quoted(dumper: yaml.SafeDumper, text: str) -> yaml.nodes.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style='"')


_Dumper.add_multi_representer(str, _quoted)
_Dumper.add_representer(str, _quoted)


def _inline_yaml(value: object) -> Markup:
    """Write a value on one line."""
    text = yaml.dump(
        value, Dumper=_Dumper, default_flow_style=True, width=float("inf"), allow_unicode=True, sort_keys=False
    )
    return Markup(text.removesuffix("\n").removesuffix("\n..."))  # noqa: S704 - the dump quotes every text


def _numbered(text: str) -> str:
    return "\n".join(f"  {number:3} | {line}" for number, line in enumerate(text.splitlines(), 1))


def _files_in(folders: Sequence[Path]) -> str:
    return ", ".join(sorted({path.name for folder in folders for path in folder.glob("*.y*ml*")})) or "none"


def _first(folders: Sequence[Path], name: str) -> Path:
    """Return the file in the first folder that has it, else its path in the first folder."""
    return next((path for folder in folders if (path := folder / name).is_file()), folders[0] / name)
