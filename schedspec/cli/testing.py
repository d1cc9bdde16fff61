"""`schedspec test`: run the features of a repository with the Python that schedspec is installed in.

A separate installation (pipx, uv tool) does not use the repository's environment, so the repository may pin any version
of pytest and pytest-bdd.
"""

from __future__ import annotations

import itertools
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from .. import distribution
from ..clusters.protocol import ClusterError
from ..options.flags import FLAGS
from . import output, repository
from .answers import explains_errors

_LINES = re.compile(r"(:\d*)+$")
"""Line numbers after the path of a file."""
_OF_PYTEST = ("-k", "-m", "-n", "-c", "-p", "-o", "-W", "--junitxml", "--junit-xml", "--rootdir", "--basetemp", "--tb")
_VALUED = {*_OF_PYTEST, *(f"--{flag}" for flag, (value, _) in FLAGS.items() if value)}
"""Options whose value is the next argument."""


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
    runs = runs_of(arguments)
    status = 0
    for home, words in runs:
        out = []
        if len(runs) > 1:
            _refuse_one_file(arguments, runs)
            out = [f"--out={Path('out', 'run', slug(home))}"]
        ended = output.run_pytest(distribution.environment(), *out, *words)
        status = status or ended
    return status


def runs_of(arguments: Sequence[str]) -> list[tuple[Path, list[str]]]:
    """Return the runs that pytest's arguments ask for: a folder of ours, and the arguments of its run.

    pytest reads one ini file a run. Folders of ours that have their own therefore run one after the other, each with
    its ini file, policies and sentences; node ids stay relative to the working directory.

    Raises:
        ClusterError: no argument names features, and the working directory has none; or pytest cannot read the options
            of its environment variable.
    """
    try:
        shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))
    except ValueError as problem:
        raise ClusterError(
            f"pytest cannot read its options: {problem}", "PYTEST_ADDOPTS", "correct the variable"
        ) from None
    named = names_path(arguments)
    words = [Path(_file_of(word)) for word in _words(arguments) if Path(_file_of(word)).exists()]
    if empty := [path for path in words if path.is_dir() and not next(path.rglob("*.feature"), None)]:
        raise ClusterError("no feature is below", ", ".join(map(str, empty)), "name a folder of features")
    paths = [*_paths(arguments)] if named else [*map(str, default_paths())]
    others = [argument for argument in arguments if argument not in paths] if named else [*arguments]
    of_home: dict[Path | None, list[str]] = {}
    for path in paths:
        of_home.setdefault(repository.home_of(Path(_file_of(path))), []).append(path)
    is_found = all(Path(path.partition("::")[0]).exists() for path in paths)  # so that pytest finds its ini file
    if (len(of_home) < 2 and is_found) or None in of_home:
        return [(next(iter(of_home), None) or Path(), [*arguments] if named else [*paths, *others])]
    return [
        (home, ["-c", str(repository.options_file(home)), "--rootdir=.", *chosen, *others])
        for home, chosen in of_home.items()
        if home is not None
    ]


def slug(home: Path) -> str:
    """Return the name of a folder's results, unique among the folders of a run."""
    return os.path.relpath(home).replace(os.sep, "-").strip(".-") or "here"


def _refuse_one_file(arguments: Sequence[str], runs: Sequence[tuple[Path, list[str]]]) -> None:
    for argument in arguments:
        if argument.partition("=")[0] in {"--out", "--junitxml", "--junit-xml", "--shard", "--cucumber-messages"}:
            what = f"{argument} is of one run, and {len(runs)} folders of ours run here, each with its own ini file"
            do_next = f"name one of {', '.join(str(home) for home, _ in runs)}, or leave the option out"
            raise ClusterError(what, str(Path().absolute()), do_next)


def _paths(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the arguments that name folders and feature files."""
    for argument in _words(arguments):
        path = Path(_file_of(argument))
        if path.is_dir() or path.suffix == ".feature":
            yield argument


def _words(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the arguments that are neither an option nor the value of one."""
    for before, argument in itertools.pairwise(("", *arguments)):
        if argument and not argument.startswith("-") and before not in _VALUED:
            yield argument


def _file_of(argument: str) -> str:
    return _LINES.sub("", argument.partition("::")[0])


def names_path(arguments: Sequence[str]) -> bool:
    """Whether an argument names an existing file or folder, or a line or scenario in a file."""
    return any(Path(path).exists() for path in map(_file_of, _words(arguments)) if path)


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
        home, do_next = repository.home_of(here), f"name a folder, or run: {distribution.prompt()} init"
        if home is not None:
            do_next = f"name the folder of the features that are nearest: {os.path.relpath(home)}"
        raise ClusterError("this folder has no features", str(here.absolute()), do_next)
    return found or [here / "features"]
