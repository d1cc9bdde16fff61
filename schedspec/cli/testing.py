"""`schedspec test`: run the features of a repository with the Python that schedspec is installed in.

A separate installation (pipx, uv tool) does not use the repository's environment, so the repository may pin any version
of pytest and pytest-bdd.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from .. import distribution
from ..clusters.protocol import ClusterError
from ..options.flags import FLAGS
from . import repository
from .answers import explains_errors

_LINES = re.compile(r"(:\d*)+$")
"""Line numbers after the path of a file."""


class PytestCommand(click.Command):
    """Command that passes its arguments to pytest; help lists our options of pytest."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the options of a run; `pytest --help` has those of pytest."""
        with formatter.section("Options"):
            formatter.write_dl([(f"--{flag} {value}".strip(), text) for flag, (value, text) in FLAGS.items()])
        formatter.write_paragraph()
        formatter.write_text("Further options, such as -k, -n and -v: pytest --help")


@click.command(
    "test",
    cls=PytestCommand,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[PATH]… [PYTEST OPTION]…")
@click.pass_context
@explains_errors
def test_command(context: click.Context, arguments: tuple[str, ...]) -> int:
    """Run features with pytest of the environment in which schedspec is installed, with all options of pytest.

    Without a path, it runs the features of this folder, else of the folders below it whose ini file sets an option
    `schedspec_…`.

    \b
    Examples:
      schedspec test
      schedspec test queues/features/lending.feature:24 --cluster embedded -v
      schedspec test -n 4 -k release
    """
    if arguments in (("--help",), ("-h",)):
        click.echo(context.get_help())
        return 0
    words = [*arguments] if names_path(arguments) else [*map(str, default_paths()), *arguments]
    command = [sys.executable, "-m", "pytest", "-p", "schedspec.plugin", *words]
    return subprocess.run(command, env=distribution.environment(), check=False).returncode


def names_path(arguments: Sequence[str]) -> bool:
    """Whether an argument names an existing file or folder, or a line or scenario in a file."""
    first = [
        _LINES.sub("", argument.partition("::")[0])
        for argument in arguments
        if argument and not argument.startswith("-")
    ]
    return any(Path(path).exists() for path in first if path)


def default_paths() -> list[Path]:
    """Return the folders with scenarios in or below the working directory.

    Raises:
        ClusterError: there are none.
    """
    here = Path()
    found = repository.homes(here)
    if not found and any(here.glob("*.feature")):
        return [here]
    if not found and not (here / "features").is_dir():
        raise ClusterError(
            "this folder has no features", str(here.absolute()), f"name a folder, or run: {distribution.prompt()} init"
        )
    return found or [here / "features"]
