"""`schedspec matrix`: compare the verdicts of several schedulers, scenario by scenario."""

from __future__ import annotations

from pathlib import Path

import click

from ..api.errors import HarnessError
from ..report import matrix, record
from .answers import explains_errors, refuse_lost_files_beside


@click.command("matrix")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN…")
@click.option("--out", type=click.Path(path_type=Path), default=Path("out/matrix"), show_default=True, metavar="FOLDER")
@explains_errors
def matrix_command(runs: tuple[Path, ...], out: Path) -> int:
    """Compare runs by scenario, scheduler and version, as JSON, as Markdown and in a page of their report.

    RUN is the folder of a run (pytest's --out) or its results.json. Runs of one scheduler in one version on one
    Kubernetes are one column.

    \b
    Examples:
      pytest features --scheduler kube-scheduler --cluster embedded --out out/kube-scheduler
      schedspec matrix out/run out/kube-scheduler
    """
    if len({run.resolve() for run in runs}) < len(runs):
        raise HarnessError("a RUN is named twice: its verdicts would count twice\n  do next: name each run once")
    beside = [out / name for name in ("matrix.md", "matrix.html", "summary.md")]
    refuse_lost_files_beside("--out", out / "matrix.json", beside)
    found = matrix.make(map(matrix.read, runs))
    folders = [run if run.is_dir() else run.parent for run in runs]
    files = matrix.write(found, out, list(record.read_all(folders)))
    summary = out / "summary.md"
    summary.write_text(matrix.summary(found), "utf-8")
    for file in [*files, summary]:
        click.echo(file)
    return 0
