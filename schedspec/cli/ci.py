"""`schedspec ci`: the work of the GitHub Action: run pytest, then write summary, annotations and outputs."""

from __future__ import annotations

import contextlib
import os
import secrets
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import msgspec

from .. import distribution, results
from ..api import untrusted
from ..ci import github, joined
from ..ci.joined import ResultsError, Suite
from ..ci.sharding import DURATIONS_FILE
from ..report import build
from ..report.files import PAGE, RECORDS
from . import output, testing
from .answers import explains_errors


@click.command("ci", context_settings={"ignore_unknown_options": True})
@click.option("--features", envvar="SCHEDSPEC_FEATURES", metavar="PATHS", help="Feature files and folders.")
@click.option("--cluster", envvar="SCHEDSPEC_CLUSTER", metavar="KIND", help="embedded, kind, simulated or auto.")
@click.option("--policy", envvar="SCHEDSPEC_POLICY", metavar="FILE", help="The policy of scenarios that name none.")
@click.option("--scheduler", envvar="SCHEDSPEC_SCHEDULER", metavar="WHICH", help="The scheduler under test.")
@click.option(
    "--kubernetes-version",
    envvar="SCHEDSPEC_KUBERNETES_VERSION",
    metavar="MINOR",
    help="The Kubernetes of an embedded cluster.",
)
@click.option("--shard", envvar="SCHEDSPEC_SHARD", metavar="N/OF", help="Run one part of the suite, for instance 2/5.")
@click.option(
    "--arguments",
    envvar="SCHEDSPEC_ARGUMENTS",
    metavar="ARGS",
    help="More arguments of pytest, with the quoting of a shell.",
)
@click.option(
    "--out",
    envvar="SCHEDSPEC_OUT",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out/ci"),
    show_default=True,
    help="Folder for JUnit, records, logs and durations.",
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

    --join also writes one page of all shards, and reports a missing shard.

    Summary and outputs go to the files that $GITHUB_STEP_SUMMARY and $GITHUB_OUTPUT name; without these variables, the
    command only prints the headline. The exit status is pytest's, or 1 if pytest wrote no results.

    \b
    Examples:
      schedspec ci --features features --cluster embedded
      schedspec ci --shard 2/5 -- --shard-durations durations.json
      schedspec ci --join results --out joined
    """
    for variable in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"):
        _append(variable, "")  # an hour of scenarios must not end at a file that cannot be written
    if join:
        found = joined.read(join)
        _write_durations(join, out)
        _join_reports(join, out / PAGE)
        status = 1 if found.bad else 0
    else:
        options = {"cluster": cluster, "policy": policy, "scheduler": scheduler, "shard": shard}
        options |= {"kubernetes-version": kubernetes_version}
        words = [f"--{name}={value}" for name, value in options.items() if value]
        given = [*_split("--features", features), *_split("--arguments", arguments), *more]
        status, found = _run_all(testing.runs_of(given), words, out)
    _publish(found, out, f"schedspec {cluster}" if cluster else "schedspec")
    return status


def _split(option: str, words: str | None) -> list[str]:
    try:
        return shlex.split(words or "")
    except ValueError as error:
        do_next = "close the quotation, or write a backslash before the mark"
        raise ResultsError(f"{option} {words}: {error}\n  do next: {do_next}") from None


def _run_all(runs: Sequence[tuple[Path, list[str]]], options: Sequence[str], out: Path) -> tuple[int, Suite]:
    """Run each folder of ours; join the results of several, of which each has a folder below `out`."""
    if len(runs) == 1:
        status = _run([*options, *runs[0][1]], out)
        return status, _read(out, status)
    if any(option.startswith("--shard=") for option in options):
        do_next = f"name one with --features: {', '.join(str(home) for home, _ in runs)}"
        raise ResultsError(f"--shard divides one suite, and {len(runs)} folders of ours run here\n  do next: {do_next}")
    folders = [out / testing.slug(home) for home, _ in runs]
    ended = [_run([*options, *words], folder) for folder, (_, words) in zip(folders, runs, strict=True)]
    suites = [_read(folder, status) for folder, status in zip(folders, ended, strict=True)]
    _write_durations(folders, out)
    _join_reports(folders, out / PAGE)
    return next(filter(None, ended), 0), Suite(tuple(row for suite in suites for row in suite.results))


def _run(words: Sequence[str], out: Path) -> int:
    junit = out / "junit.xml"
    for earlier in (junit, out / PAGE, out / results.FILE):  # in case this run ends before it writes them
        earlier.unlink(missing_ok=True)
    with _without_commands():
        return output.run_pytest(distribution.environment(), f"--junitxml={junit}", f"--out={out}", *words)


@contextlib.contextmanager
def _without_commands() -> Iterator[None]:
    """Make GitHub ignore workflow commands in pytest's output, which contains names and sentences of a pull request."""
    if os.environ.get("GITHUB_ACTIONS") != "true":
        yield
        return
    token = secrets.token_hex(16)
    click.echo(f"::stop-commands::{token}")
    sys.stdout.flush()
    try:
        yield
    finally:
        click.echo(f"\n::{token}::")
        sys.stdout.flush()


def _read(out: Path, status: int) -> Suite:
    if not (out / results.FILE).is_file():
        raise ResultsError(
            f"pytest ended with status {status} before it wrote {out / results.FILE}; its output above has the reason"
        )
    return joined.suite_of([results.read(out)])


def _publish(found: Suite, out: Path, title: str) -> None:
    _append("GITHUB_STEP_SUMMARY", github.summary(found, title, github.Links.of(os.environ, _prefix())))
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
        try:
            with Path(file).open("a", encoding="utf-8") as stream:
                stream.write(text)
        except OSError as error:
            do_next = f"name a file in a folder that exists, or unset {variable}"
            raise ResultsError(f"${variable}: {file}: {error.strerror}\n  do next: {do_next}") from None


def _prefix() -> str:
    """Return the path of the working directory relative to the repository's root, for paths of annotations."""
    try:
        return Path.cwd().relative_to(os.environ.get("GITHUB_WORKSPACE", ".")).as_posix()
    except ValueError:
        return ""


def _join_reports(folders: Sequence[Path], page: Path) -> None:
    """Write one page of all shards, unless no scenario began."""
    if any(next(folder.glob(RECORDS), None) for folder in folders):
        build(folders, page)


def _write_durations(folders: Sequence[Path], out: Path) -> None:
    """Write the durations of all shards into one file, for `--shard-durations` of the next run."""
    joined: dict[str, float] = {}
    for folder in folders:
        for file in sorted(folder.rglob(DURATIONS_FILE)):
            joined |= untrusted.decode(file, untrusted.read_bytes(file), dict[str, float], "a file of durations")
    if joined:
        out.mkdir(parents=True, exist_ok=True)
        text = msgspec.json.format(msgspec.json.encode(dict(sorted(joined.items()))), indent=1)
        (out / DURATIONS_FILE).write_bytes(text + b"\n")
