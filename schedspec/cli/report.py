"""`schedspec report`: write one page from the records of several runs, and files for other tools."""

from __future__ import annotations

from pathlib import Path

import click

from .. import results
from ..report import build, comparison
from .answers import explains_errors, refuse_one_file_twice

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("report")
@click.argument("directories", metavar="DIR...", nargs=-1, required=True, type=_FOLDER)
@click.option("-o", "--output", type=_FILE, default="report.html", show_default=True, help="Path of the page.")
@click.option("--perfetto", metavar="FILE", type=_FILE, help="Also write a trace for ui.perfetto.dev.")
@click.option("--cucumber-messages", metavar="FILE", type=_FILE, help="Also write Cucumber Messages (NDJSON).")
@click.option("--against", metavar="OTHER", type=_FOLDER, help="Another run: print and show the differences from it.")
@explains_errors
def report_command(
    directories: tuple[Path, ...],
    output: Path,
    perfetto: Path | None,
    cucumber_messages: Path | None,
    against: Path | None,
) -> int:
    """Join the records of runs, shards and clusters below these folders into one page.

    If a scenario has several records on one cluster with one scheduler, only the newest is used.

    \b
    Examples:
      schedspec report out/run
      schedspec report shard-1 shard-2 shard-3 -o all.html
      schedspec report out/run --perfetto run.pftrace
      schedspec report out/run --against out/main     # flipped verdicts, evictions, times
    """
    pages = [("-o", output), ("--perfetto", perfetto), ("--cucumber-messages", cucumber_messages)]
    read = [("DIR", file) for folder in directories for file in (folder / "results.json", folder / "run.json")]
    refuse_one_file_twice(pages, read)
    found = build(directories, output, perfetto=perfetto, cucumber_messages=cucumber_messages, against=against)
    if against is not None:
        for line in comparison.lines(comparison.compare(results.read_all([against]), results.read_all(directories))):
            click.echo(line)
    click.echo(f"{output}: {found} scenario{'s' * (found != 1)}")
    return 0
