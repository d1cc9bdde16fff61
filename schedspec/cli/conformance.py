"""`schedspec conformance`: run the scenarios of one or more profiles with a scheduler, and write its report."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from .. import distribution, results
from ..conformance import report_file
from ..conformance.levels import MEANING, Level
from . import output
from .answers import explains_errors, refuse_lost_files_beside

REPORT, BADGE = "conformance.yaml", "conformance.svg"


@click.command("conformance")
@click.option("--scheduler", default="schedspec", show_default=True, metavar="NAME", help="As pytest's --scheduler.")
@click.option(
    "--profile",
    "profiles",
    type=click.Choice([*map(str, Level), "all"]),
    default=str(Level.CORE),
    show_default=True,
    help="; ".join(f"{level}: {meaning}" for level, meaning in MEANING.items()),
)
@click.option("--cluster", default="embedded", show_default=True, metavar="KIND", help="As pytest's --cluster.")
@click.option(
    "--from",
    "existing",
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="Report on an existing run (pytest's --out) instead of running the scenarios.",
)
@click.option("--out", type=click.Path(path_type=Path), default=Path("out/conformance"), show_default=True)
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar="[-- PYTEST OPTION…]")
@explains_errors
def conformance_command(
    *, scheduler: str, profiles: str, cluster: str, existing: Path | None, out: Path, options: tuple[str, ...]
) -> int:
    """Run the scenarios of a profile with a scheduler, and write a report (YAML) and a badge (SVG).

    The exit status is 0 if the scheduler is conformant in every profile, else 1.

    \b
    Examples:
      schedspec conformance --scheduler kueue --profile core
      schedspec conformance --scheduler volcano --profile all -- -n 2
      schedspec conformance --from out/run --profile extended
    """
    refuse_lost_files_beside("--out", out / BADGE, [out / REPORT])
    levels = list(Level) if profiles == "all" else [Level(profiles)]
    if existing is None:
        status = _run(scheduler, levels, cluster, out, options)
        if not (out / results.FILE).is_file():  # pytest printed why
            return status or 1
    found = report_file.make(results.read(existing or out), levels, distribution.version() or "checkout")
    out.mkdir(parents=True, exist_ok=True)
    (out / REPORT).write_bytes(msgspec.yaml.encode(found))
    (out / BADGE).write_text(report_file.badge(found), "utf-8")
    for profile in found.profiles:
        click.echo(
            f"{profile.name}: {profile.result}; of {profile.scenarios} scenarios {profile.passed} passed, "
            f"{len(profile.failed)} failed, {len(profile.known_differences)} differ as known, "
            f"{len(profile.by_design)} by design, {len(profile.lacking)} lack a capability, "
            f"{len(profile.unjudged)} were not judged"
        )
    click.echo(out / REPORT)
    return 0 if all(profile.result == "conformant" for profile in found.profiles) else 1


def _run(scheduler: str, levels: list[Level], cluster: str, out: Path, options: tuple[str, ...]) -> int:
    features = distribution.folder("features")
    words = [str(features), "-m", " or ".join(levels), "--scheduler", scheduler, "--cluster", cluster]
    (out / results.FILE).unlink(missing_ok=True)
    return output.run_pytest(distribution.environment(), *words, "--out", str(out), *options)
