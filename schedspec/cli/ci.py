"""`schedspec ci`: all that the Action does. It runs pytest as it is, then says in GitHub's words what came of it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import click
import msgspec

from .. import distribution
from ..ci import github, results
from ..ci.results import Place, Results, ResultsError
from ..ci.sharding import DURATIONS_FILE
from ..report import build, record
from ..report.files import PAGE, RECORDS
from .answers import explains_errors


@click.command("ci", context_settings={"ignore_unknown_options": True})
@click.option("--features", envvar="SCHEDSPEC_FEATURES", metavar="PATHS", help="Feature files and folders.")
@click.option("--cluster", envvar="SCHEDSPEC_CLUSTER", metavar="KIND", help="embedded, kind or auto.")
@click.option("--policy", envvar="SCHEDSPEC_POLICY", metavar="FILE", help="The policy of scenarios that name none.")
@click.option("--scheduler", envvar="SCHEDSPEC_SCHEDULER", metavar="WHICH", help="Who schedules.")
@click.option(
    "--kubernetes-version", envvar="SCHEDSPEC_KUBERNETES_VERSION", metavar="MINOR", help="Of an embedded cluster."
)
@click.option("--shard", envvar="SCHEDSPEC_SHARD", metavar="N/OF", help="One part of the suite.")
@click.option("--arguments", envvar="SCHEDSPEC_ARGUMENTS", metavar="ARGS", help="More arguments of pytest, as a shell.")
@click.option(
    "--out",
    envvar="SCHEDSPEC_OUT",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out/ci"),
    show_default=True,
    help="Where JUnit, records, logs and durations go.",
)
@click.option(
    "--join",
    type=click.Path(exists=True, path_type=Path),
    multiple=True,
    help="Run nothing: join the results of shards in this folder. Repeat for several.",
)
@click.argument("more", nargs=-1, type=click.UNPROCESSED, metavar="[PYTEST ARGUMENT]…")
@explains_errors
def ci_command(  # noqa: PLR0917 - an option each
    features: str | None,
    cluster: str | None,
    policy: str | None,
    scheduler: str | None,
    kubernetes_version: str | None,
    shard: str | None,
    arguments: str | None,
    out: Path,
    join: tuple[Path, ...],
    more: tuple[str, ...],
) -> int:
    """Run features as a job of GitHub Actions does: summary, annotations, outputs, and files to upload.

    --join writes one page of all shards too, and notices a shard that is missing.

    What GitHub is told goes where its variables say ($GITHUB_STEP_SUMMARY, $GITHUB_OUTPUT); without them only the
    headline is printed. Exits with pytest's status.

    \b
    Examples:
      schedspec ci --features features --cluster embedded
      schedspec ci --shard 2/5 -- --shard-durations durations.json
      schedspec ci --join results --out joined
    """
    if join:
        found = _as_recorded(results.read(join), [it for it in join if it.is_dir()])
        _write_durations(join, out)
        _join_reports(join, out / PAGE)
        status = 1 if found.bad else 0
    else:
        options = {"cluster": cluster, "policy": policy, "scheduler": scheduler, "shard": shard}
        options |= {"kubernetes-version": kubernetes_version}
        words = [f"--{name}={value}" for name, value in options.items() if value]
        words += [*shlex.split(features or ""), *shlex.split(arguments or ""), *more]
        status = _run(words, out)
        found = _as_recorded(_read(out, status), [out])
    _say(found, out, f"schedspec {cluster}" if cluster else "schedspec")
    return status


def _run(words: Sequence[str], out: Path) -> int:
    junit = out / "junit.xml"
    for earlier in (junit, out / PAGE):  # should this run end before it writes
        earlier.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-p", "schedspec.plugin", f"--junitxml={junit}", f"--out={out}", *words]
    return subprocess.run(command, env=distribution.environment(), check=False).returncode


def _read(out: Path, status: int) -> Results:
    if not (out / "junit.xml").is_file():
        raise ResultsError(f"pytest ended with status {status} before it wrote {out / 'junit.xml'}; it says above why")
    return results.read([out / "junit.xml"])


def _as_recorded(found: Results, folders: Iterable[Path]) -> Results:
    """The results, with the line and the words of each failure as its record, and so the report, has them. What has no
    record, as a file that cannot be collected, stays as JUnit has it.
    """
    if not found.bad:
        return found
    records = {it.anchor: it for it in record.read_all(folders) if it.failure is not None}
    cases = []
    for case in found.cases:
        it = records.get(case.anchor)
        if it is None or case.verdict != "failed":
            cases.append(case)
            continue
        path, _, line = it.where.rpartition(":")
        cases.append(replace(case, places=(Place(path, int(line), it.headline), *case.places[1:])))
    return Results(tuple(cases))


def _say(found: Results, out: Path, title: str) -> None:
    _append("GITHUB_STEP_SUMMARY", github.summary(found, title))
    page = out / PAGE
    _append("GITHUB_OUTPUT", github.outputs(found, str(out), str(page) if page.is_file() else ""))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        for line in github.annotate(found, _prefix()):
            click.echo(line)
    click.echo(
        f"{title}: {github.headline(found)}; {'report: ' + str(page) if page.is_file() else f'results in {out}'}"
    )


def _append(variable: str, text: str) -> None:
    file = os.environ.get(variable)
    if file:
        with Path(file).open("a", encoding="utf-8") as stream:
            stream.write(text)


def _prefix() -> str:
    """The working directory below the repository's root, which annotations count from."""
    try:
        return Path.cwd().relative_to(os.environ.get("GITHUB_WORKSPACE", ".")).as_posix()
    except ValueError:
        return ""


def _join_reports(folders: Sequence[Path], page: Path) -> None:
    """One page of all shards; none where no scenario was begun."""
    if any(next(folder.glob(RECORDS), None) for folder in folders):
        build(folders, page)


def _write_durations(folders: Sequence[Path], out: Path) -> None:
    """One file of all shards' durations: the next run's `--shard-durations`."""
    joined: dict[str, float] = {}
    for folder in folders:
        for file in sorted(folder.rglob(DURATIONS_FILE)):
            joined |= msgspec.json.decode(file.read_bytes(), type=dict[str, float])
    if joined:
        out.mkdir(parents=True, exist_ok=True)
        text = msgspec.json.format(msgspec.json.encode(dict(sorted(joined.items()))), indent=1)
        (out / DURATIONS_FILE).write_bytes(text + b"\n")
