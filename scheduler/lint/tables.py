"""`python -m scheduler.lint.tables`: generate the tables of the documentation from the plugins' classes.

The text between `<!-- NAME: … -->` and `<!-- end -->` in `PAGES` is generated here; a test compares it.
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from ..plugins import PLUGINS
from ..policy import schema
from ..policy.hooks import HOOKS
from ..policy.schema import SWITCHES, Argument
from ..policy.tiers import Hooks

PAGES = ("docs/policies.md", "docs/plugins.md")
_PART = re.compile(r"(?P<head><!-- (?P<name>\w+): [^\n]*-->\n).*?(?=<!-- end -->)", re.DOTALL)


def switches() -> Iterator[str]:
    """Yield the table of switches with their meanings and plugins."""
    yield from ("| switch | decides | plugins |", "| --- | --- | --- |")
    for switch, decides in SWITCHES.items():
        if decides:
            names = ", ".join(name for name, rule in sorted(schema.PLUGINS.items()) if switch in rule.switches)
            yield f"| `{switch}` | {decides} | {names} |"
    ignored = ", ".join(f"`{switch}`" for switch, decides in SWITCHES.items() if not decides)
    yield from ("", _paragraph(f"Accepted without effect (lint reports this): {ignored}."))


def arguments() -> Iterator[str]:
    """Yield the table of all plugins' arguments."""
    yield from ("| plugin | argument | value | default | means |", "| --- | --- | --- | --- | --- |")
    without, ignored = [], []
    for name, rule in sorted(schema.PLUGINS.items()):
        rows = [*rule.arguments.items(), *((f"{prefix}<name>", one) for prefix, one in rule.families.items())]
        known = [(key, argument) for key, argument in rows if not argument.ignored]
        for key, argument in known:
            yield f"| `{name}` | `{key}` | {argument.wording} | {_default(argument)} | {argument.means} |"
        without += [] if known else [f"`{name}`"]
        ignored += [f"`{key}` of `{name}` ({argument.ignored})" for key, argument in rows if argument.ignored]
    yield from ("", f"Without arguments: {', '.join(without)}.")
    yield from ("", _paragraph(f"Accepted without effect (lint reports this): {', '.join(ignored)}."))


def _paragraph(text: str) -> str:
    """Return the text on lines that fit a screen."""
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _default(argument: Argument) -> str:
    if argument.default is None or argument.default == "":
        return "–"
    return str(argument.default).lower() if isinstance(argument.default, bool) else f"{argument.default}"


def hooks() -> Iterator[str]:
    """Yield the table of hooks: what a method returns, and how the results of several plugins combine."""
    yield from ("| hook | returns | with several plugins |", "| --- | --- | --- |")
    hooks = Hooks()
    for name, hook in HOOKS.items():
        method = getattr(hook.protocol, name)
        given = ", ".join(list(inspect.signature(method).parameters)[1:])
        answers = " ".join((inspect.getdoc(method) or "").replace("``", "`").split())
        combine = (inspect.getdoc(getattr(hooks, name)) or "").rstrip(".")
        yield f"| `{name}({given})` | {answers} | {combine} |"


TABLES = {"switches": switches, "arguments": arguments, "hooks": hooks}


def written(page: str) -> str:
    """Return a page with its tables generated again."""
    return _PART.sub(lambda part: part["head"] + "\n".join(TABLES[part["name"]]()) + "\n", page)


def main() -> int:
    """Write the tables of all pages. Return 0, or 2 on failure."""
    assert PLUGINS, "importing the plugins registers them"
    for page in map(Path, PAGES):
        try:
            page.write_text(written(page.read_text("utf-8")), "utf-8")
        except OSError as error:
            sys.stderr.write(f"{page}: {error.strerror}; run this where the project's docs/ are\n")
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
