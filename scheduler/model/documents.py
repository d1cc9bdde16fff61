"""Read YAML that users and clusters supply: the one reader of documents, with bounds.

1. The events of the text are read first, without recursion: they count depth and size, also the size that the document
   would have with all aliases written out. A few hundred bytes of aliases can stand for gigabytes.
2. A text within the bounds is composed into nodes, which keep the lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

MAX_BYTES = 64 << 20
"""Maximum characters of a text; PyYAML reads about a megabyte a second."""
MAX_DEPTH = 200
"""Maximum nesting: Kubernetes' own objects have at most about 30 levels."""
MAX_GROWTH, MAX_SMALL = 10, 100_000
"""A document may have this many times its nodes with its aliases written out, and this many in any case."""
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class DocumentError(ValueError):
    """A text that is not YAML, or exceeds a bound."""

    def __init__(self, line: int, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.line, self.problem, self.remedy = line, problem, remedy


def compose(text: str) -> list[yaml.Node]:
    """Return the documents of a text that are not empty, with their lines.

    Raises:
        DocumentError: The text is not YAML, or it is too large, too deep, or has too many aliases.
    """
    if len(text) > MAX_BYTES:
        raise DocumentError(1, f"has {len(text):,} characters; at most {MAX_BYTES:,} are read", "split the file")
    try:
        _require_bounded(text)
        return _composed(text, _LOADER)
    except (yaml.YAMLError, UnicodeEncodeError):
        return _composed_slowly(text)  # the errors of this loader say more


def _composed(text: str, loader: Any) -> list[yaml.Node]:
    nodes = yaml.compose_all(text, loader)
    found = [node for node in nodes if node is not None and node.tag != "tag:yaml.org,2002:null"]
    for node in found:
        _read_as_kubectl(node)
    return found


def _composed_slowly(text: str) -> list[yaml.Node]:
    try:
        return _composed(text, yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise DocumentError(line, f"not YAML: {error.problem}", "correct the indentation or quoting there") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        found = f"character #x{error.character:04x}: {error.reason}"
        raise DocumentError(line, f"not YAML: {found}", "remove this character") from error


def construct(node: yaml.Node) -> Any:
    """Return the value of a document. Raises DocumentError for a tag, a value that is not plain, or a key twice."""
    _require_unique_keys(node)
    loader = yaml.SafeLoader("")
    try:
        return loader.construct_document(node)
    except (yaml.constructor.ConstructorError, ValueError, AttributeError) as error:
        # an unknown tag, `!!timestamp soon`
        problem = error.problem if isinstance(error, yaml.MarkedYAMLError) else str(error)
        text = f"not an object: {problem}"
        raise DocumentError(node.start_mark.line + 1, text, "write plain YAML without tags") from error
    finally:
        loader.dispose()


_NUMBERS, _DATE = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float"), "tag:yaml.org,2002:timestamp"
_TEXT = "tag:yaml.org,2002:str"


def _parts(node: yaml.Node) -> Iterator[yaml.Node]:
    """Yield a node and all nodes within it, each once, without recursion."""
    waiting, seen = [node], set[int]()
    while waiting:
        part = waiting.pop()
        if id(part) not in seen:  # by aliases
            seen.add(id(part))
            yield part
            if isinstance(part, yaml.SequenceNode):
                waiting += part.value
            elif isinstance(part, yaml.MappingNode):
                waiting += [value for _, value in part.value]


def _read_as_kubectl(node: yaml.Node) -> None:
    """Let dates and numbers with colons be texts; PyYAML reads `1:30` as 90."""
    for part in _parts(node):
        if isinstance(part, yaml.ScalarNode) and not part.style:
            is_date = part.tag == _DATE and part.value[:1].isdigit()
            if is_date or (part.tag in _NUMBERS and ":" in part.value):
                part.tag = _TEXT


def _require_unique_keys(node: yaml.Node) -> None:
    """Raise DocumentError for a mapping with two equal keys: PyYAML would drop the first one, kubectl refuses both."""
    for part in _parts(node):
        keys = set[str]()
        for key, _ in part.value if isinstance(part, yaml.MappingNode) else ():
            if isinstance(key, yaml.ScalarNode) and key.value in keys:
                raise DocumentError(key.start_mark.line + 1, f"{key.value!r} is written twice", "keep one")
            keys |= {key.value} if isinstance(key, yaml.ScalarNode) else set()


def _require_bounded(text: str) -> None:
    """Raise DocumentError for a text that is too deep, or too large with its aliases written out."""
    event: Any
    open_sizes: list[int] = [0]
    names: list[str | None] = []
    sizes: dict[str, int] = {}
    for nodes, event in enumerate(yaml.parse(text, _LOADER), 1):
        line = event.start_mark.line + 1
        if isinstance(event, yaml.DocumentStartEvent):
            sizes, open_sizes, names = {}, [0], []
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor in names:
                raise DocumentError(line, f"the alias {event.anchor} contains itself", "write the value out")
            open_sizes[-1] += sizes.get(str(event.anchor), 1)
        elif isinstance(event, yaml.CollectionStartEvent):
            open_sizes.append(1)
            names.append(event.anchor)
        elif isinstance(event, yaml.ScalarEvent):
            open_sizes[-1] += 1
            sizes |= {event.anchor: 1} if event.anchor else {}
        elif isinstance(event, yaml.CollectionEndEvent):
            size, name = open_sizes.pop(), names.pop()
            open_sizes[-1] += size
            sizes |= {name: size} if name else {}
        if len(names) > MAX_DEPTH:
            raise DocumentError(line, "nested too deep", "close the brackets that were opened")
        if open_sizes[-1] > max(MAX_GROWTH * nodes, MAX_SMALL):
            raise DocumentError(line, "its aliases stand for too many values", "write the values out")
