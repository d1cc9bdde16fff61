"""`schedspec report`: one page of the records of several runs, and what other tools read of them."""

from __future__ import annotations

from pathlib import Path

import click

from ..report import build
from .answers import explains_errors

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("report")
@click.argument("directories", metavar="DIR...", nargs=-1, required=True, type=_FOLDER)
@click.option("-o", "--output", type=_FILE, default="report.html", show_default=True, help="The page.")
@click.option("--perfetto", metavar="FILE", type=_FILE, help="A trace for ui.perfetto.dev too.")
@click.option("--cucumber-messages", metavar="FILE", type=_FILE, help="Cucumber Messages (NDJSON) too.")
@explains_errors
def report_command(
    directories: tuple[Path, ...], output: Path, perfetto: Path | None, cucumber_messages: Path | None
) -> int:
    """Join the records of runs, shards and clusters below these folders into one page.

    Of several records of one scenario on one cluster with one scheduler the youngest counts.

    \b
    Examples:
      schedspec report out/run
      schedspec report shard-1 shard-2 shard-3 -o all.html
      schedspec report out/run --perfetto run.pftrace
    """
    found = build(directories, output, perfetto=perfetto, cucumber_messages=cucumber_messages)
    click.echo(f"{output}: {found} scenario{'s' * (found != 1)}")
    return 0
