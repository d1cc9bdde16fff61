"""`schedspec report`: write one page from the records of several runs, and files for other tools."""

from __future__ import annotations

from pathlib import Path

import click

from .. import results
from ..lab.recorder.window import record_of
from ..report import build, comparison, html
from ..virtual.state.over_time import segments_over_time
from .answers import count, explains_errors, refuse_lost_files, refuses_bad_input, span

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("report")
@click.argument("directories", metavar="DIR...", nargs=-1, required=True, type=_FOLDER)
@click.option("-o", "--output", type=_FILE, default="report.html", show_default=True, help="Path of the page.")
@click.option("--perfetto", metavar="FILE", type=_FILE, help="Also write a trace for ui.perfetto.dev.")
@click.option("--cucumber-messages", metavar="FILE", type=_FILE, help="Also write Cucumber Messages (NDJSON).")
@click.option("--against", metavar="OTHER", type=_FOLDER, help="Another run: print and show the differences from it.")
@click.option("--from", "since", metavar="TIME", help="Of a recording of a cluster: 02:13, or ISO 8601, in UTC.")
@click.option("--to", "until", metavar="TIME", help="Default: the end of the recording.")
@explains_errors
def report_command(
    *,
    directories: tuple[Path, ...],
    output: Path,
    perfetto: Path | None,
    cucumber_messages: Path | None,
    against: Path | None,
    since: str | None,
    until: str | None,
) -> int:
    """Join the records of runs, shards and clusters below these folders into one page.

    The folder of `schedspec record` makes a page of its own, of the span between --from and --to.

    If a scenario has several records on one cluster with one scheduler, only the newest is used.

    \b
    Examples:
      schedspec report out/run
      schedspec report shard-1 shard-2 shard-3 -o all.html
      schedspec report out/run --perfetto run.json
      schedspec report out/run --against out/main     # flipped verdicts, evictions, times
      schedspec report recording --from 02:10 --to 02:40
    """
    pages = [("-o", output), ("--perfetto", perfetto), ("--cucumber-messages", cucumber_messages)]
    read = [("DIR", file) for folder in directories for file in (folder / "results.json", folder / "run.json")]
    refuse_lost_files(pages, read)
    recordings = [folder for folder in directories if segments_over_time(folder)]
    if recordings:
        others = [*directories[1:], perfetto, cucumber_messages, against]
        if any(other is not None for other in others):
            raise click.UsageError(f"{recordings[0]} is a recording: a page shows one, without other options than -o")
        return _of_recording(recordings[0], output, since, until)
    for option, text in (("--from", since), ("--to", until)):
        if text is not None:
            raise click.UsageError(f"{option}: nothing reads it without the folder of `schedspec record`")
    found = build(directories, output, perfetto=perfetto, cucumber_messages=cucumber_messages, against=against)
    if against is not None:
        for line in comparison.lines(comparison.compare(results.read_all([against]), results.read_all(directories))):
            click.echo(line)
    click.echo(f"{output}: {found} scenario{'s' * (found != 1)}")
    return 0


@refuses_bad_input
def _of_recording(folder: Path, output: Path, since: str | None, until: str | None) -> int:
    record = record_of(folder, *span(folder, since, until, ("--from", "--to")))
    html.write([record], output, opens_on=record.anchor)
    click.echo(f"{output}: {count(len(record.findings), 'finding', 'findings')}")
    return 0
