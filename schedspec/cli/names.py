"""`schedspec names`: put the names of a cluster back into what was computed from a redacted state."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

import click

from ..virtual.state.renaming import read_names, with_names
from .answers import explains_errors, refuses_bad_input


@click.command("names")
@click.argument("table", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("text", type=click.File("rb"), default="-")
@explains_errors
@refuses_bad_input
def names_command(table: Path, text: BinaryIO) -> int:
    """Print TEXT (or standard input) with the names that TABLE has for what `--redact` wrote in their place.

    TEXT is anything that was computed from a redacted dump or recording: a plan, a page, a feature, JSON.

    \b
    Examples:
      schedspec dump --redact --names names.jsonl
      schedspec plan --state state.jsonl.gz --proposed policies | schedspec names names.jsonl
      schedspec names names.jsonl plan.html > plan-with-names.html
    """
    rows = [*read_names(table)]
    try:
        given = text.read().decode()
    except UnicodeDecodeError:
        raise click.UsageError("this is no text: name a plan, a page or a feature, not a dump") from None
    click.echo(with_names(given, rows), nl=False)
    return 0
