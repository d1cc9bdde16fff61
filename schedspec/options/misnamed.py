"""Files of the user's folders that no run reads, because their names end in another way than those that runs read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..terminal import short_path

_ENDINGS = re.compile(r"(\.(ya?ml|json|jinja2?|j2|tmpl|tpl|conf))+$", re.IGNORECASE)
_JINJA = re.compile(r"\.(j2|jinja2?)$", re.IGNORECASE)


def misnamed(templates: Sequence[Path], policies: Sequence[Path]) -> Iterator[str]:
    """Yield a text for each file that looks like a template or a policy and is none, with the name that is read.

    A folder `templates` without a template of Jinja is another program's, such as a chart's.
    """
    for folder in templates:
        if not any(_JINJA.search(file.name) for file in folder.iterdir()):
            continue
        included = "".join(file.read_text("utf-8", "replace") for file in folder.glob("*.j2") if file.is_file())
        for file in _near(folder, ".yaml.j2"):
            if not (file.name.startswith("_") and file.suffix == ".j2") and file.name not in included:
                yield _text(file, ".yaml.j2")
    for folder in (*policies, *(folder / "policies" for folder in templates)):
        for file in _near(folder, ".yaml"):
            yield _text(file, ".yaml")


def _near(folder: Path, ending: str) -> Iterator[Path]:
    files = sorted(folder.iterdir()) if folder.is_dir() else ()
    return (file for file in files if file.is_file() and _ENDINGS.search(file.name) and not _is_read(file, ending))


def _is_read(file: Path, ending: str) -> bool:
    return _ENDINGS.sub("", file.name) + ending == file.name


def _text(file: Path, ending: str) -> str:
    return f"{short_path(file)} (is {_ENDINGS.sub('', file.name)}{ending} meant?)"
