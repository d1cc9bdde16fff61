"""`schedspec names`: put the names of a cluster back into what was computed from a redacted state."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from ..scheduler.model.input_files import read_bytes
from ..virtual.state.renaming import read_names, with_names
from .answers import explains_errors, refuses_bad_input


@click.command("names")
@click.argument("table", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("text", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path), default="-")
@explains_errors
@refuses_bad_input
def names_command(table: Path, text: Path) -> int:
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
        given = (sys.stdin.buffer.read() if str(text) == "-" else read_bytes(text, pipes=True)).decode()
    except UnicodeDecodeError:
        raise click.UsageError("this is no text: name a plan, a page or a feature, not a dump") from None
    click.echo(with_names(given, rows), nl=False)
    return 0
