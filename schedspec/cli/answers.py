"""Output of commands: text for people, JSON for programs, and errors without a traceback."""

from __future__ import annotations

import difflib
import itertools
import math
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from ..api.errors import HarnessError
from ..clusters.protocol import ClusterError
from ..scheduler.model.errors import BadInputError
from ..scheduler.model.printable import printable, printable_streams
from ..virtual.state import StateError
from ..virtual.state.over_time import span_of, time_in

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


def span(folder: Path, since: str | None, until: str | None, options: tuple[str, str]) -> tuple[float, float]:
    """Return the times that two options name, by default those at which the recording begins and ends.

    Raises:
        StateError: a text is no time, or the recording has nothing between these times.
    """
    begins, ends = span_of(folder)
    first = begins if since is None else time_in(folder, since)
    last = ends if until is None else time_in(folder, until)
    if first > last:
        named = f"{options[0]} {since or 'its beginning'} {options[1]} {until or 'its end'}"
        raise StateError(named, "ends before it begins", "name an earlier time first")
    if last < begins or first > ends:
        raise StateError(str(folder), "has nothing between these times", "leave the times out to read all of it")
    return first, last


Function = TypeVar("Function", bound=Callable[..., Any])


class NearestCommand(click.Group):
    """Group that suggests the command with the nearest name if no command has the given name."""

    aliases: Collection[str] = ()
    """Names that the group accepts although its help does not list them."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command as click does; the error about an unknown command names the nearest command."""
        name = args[0]
        if self.get_command(ctx, name) is None and not ctx.resilient_parsing and not name.startswith("-"):
            near = difflib.get_close_matches(name, [*self.list_commands(ctx), *self.aliases], n=1)
            hint = f" (is {near[0]!r} meant?)" if near else f"; there are: {', '.join(self.list_commands(ctx))}"
            ctx.fail(f"no such command: {name!r}{hint}")
        found = super().resolve_command(ctx, args)
        options = [option for option in (found[1].params if found[1] else ()) if isinstance(option, click.Option)]
        single = {
            name: option for option in options if not option.multiple and not option.is_flag for name in option.opts
        }
        if not ctx.resilient_parsing:
            refuse_option_twice(found[2], single, ctx)
        return found


def refuse_option_twice(arguments: Sequence[str], single: Mapping[str, object], context: click.Context | None) -> None:
    """Refuse an option that is written twice although the command reads one value: the first would be lost.

    Args:
        arguments: The command line.
        single: The spellings of the options that have one value, each with the option that it means.
        context: The command, for its usage.

    Raises:
        click.UsageError: An option is written twice.
    """
    seen: dict[int, str] = {}
    for word in itertools.takewhile("--".__ne__, arguments):
        name = word.partition("=")[0]
        if name in single and (first := seen.setdefault(id(single[name]), word)) is not word:
            before = first.partition("=")[0]
            what = f"{before} is given twice" if before == name else f"{before} and {name} are one option"
            raise click.UsageError(f"{what}, and only one value is read", context)


OF_PEOPLE = (".feature", ".py", ".yaml", ".yml", ".ini", ".toml", ".cfg", ".md", ".j2", ".csv", ".txt")
"""How files end that people write. Only `init`, `explore` and `reduce` write such files."""


def refuse_lost_files(
    outputs: Sequence[tuple[str, Path | None]], inputs: Sequence[tuple[str, Path | str | None]] = (), own: str = ""
) -> None:
    """Refuse an output that is an input too, or another output, or a file that somebody wrote.

    `own`: how the files of the command end, if people write such files, too.

    Raises:
        HarnessError: Writing an output would destroy another file.
    """
    taken = {os.path.realpath(file): option for option, file in inputs if file is not None}
    for option, file in outputs:
        if file is not None and (other := taken.setdefault(os.path.realpath(file), option)) is not option:
            raise HarnessError(f"{option}: {file} is the file of {other}, too\n  do next: name another file or folder")
        if file is not None and file.suffix in OF_PEOPLE and file.suffix != own and file.is_file():
            text = f"{option}: {file} exists, and this command writes no files of that type"
            raise HarnessError(f"{text}\n  do next: name another file")


def refuse_lost_files_beside(option: str, always: Path, others: Sequence[Path]) -> None:
    """Refuse to replace a file whose name the user did not write, unless an earlier run of the command wrote it.

    Args:
        option: The option that decides where the files are written.
        always: The file or folder that each run of the command writes, too. If it is missing, `others` are foreign.
        others: The files whose names the command chooses.

    Raises:
        HarnessError: One of `others` is a file that somebody else wrote.
    """
    lost = next((file for file in others if file.is_file()), None)
    if lost is not None and not always.exists():
        what = f"{option}: {lost} exists, and no earlier run of this command wrote it: {always} is missing"
        raise HarnessError(f"{what}\n  do next: name another place with {option}, or remove {lost.name}")


def refuse_no_cluster(kubeconfig: Path | None) -> None:
    """Refuse to read a cluster if nothing names one: no file, no configuration of kubectl, and not in a pod.

    Raises:
        HarnessError: Nothing names a cluster.
    """
    files = [Path(name) for name in os.environ.get("KUBECONFIG", "").split(os.pathsep) if name]
    named = [kubeconfig] if kubeconfig is not None else files or [Path.home() / ".kube" / "config"]
    if not any(file.exists() for file in named) and "KUBERNETES_SERVICE_HOST" not in os.environ:
        what = f"no cluster is named: {' and '.join(map(str, named))} {'do' if named[1:] else 'does'} not exist"
        raise HarnessError(f"{what}, and this is no pod\n  do next: set KUBECONFIG to the file that kubectl uses")


def output_option(function: Function) -> Function:
    """Add the option `-o json`."""
    choice = click.Choice(["text", "json"])
    return click.option("-o", "--output", type=choice, default="text", help="Text for people, or JSON for programs.")(
        function
    )


_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)([smhd])", re.ASCII)
_SIZE = re.compile(r"(\d{1,9})(Mi|Gi|Ti)B?", re.ASCII)
_BYTES = {"Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}


def parse_seconds(text: str) -> float:
    """Return a positive duration in seconds.

    >>> parse_seconds("7d"), parse_seconds("1.5h")
    (604800.0, 5400.0)

    Raises:
        ValueError: the text is no duration.
    """
    found = _DURATION.fullmatch(text)
    if found is None or not (seconds := float(found[1]) * _SECONDS[found[2]]):
        raise ValueError(text)
    return seconds


def parse_bytes(text: str) -> int:
    """Return a size of at least 1 MiB in bytes.

    >>> parse_bytes("10GiB"), parse_bytes("1Mi")
    (10737418240, 1048576)

    Raises:
        ValueError: the text is no such size.
    """
    found = _SIZE.fullmatch(text)
    if found is None or not (size := int(found[1]) * _BYTES[found[2]]):
        raise ValueError(text)
    return size


YEAR = 365 * 24 * 60
"""The minutes of a year: no run lasts longer."""


class Finite(click.FloatRange):
    """A finite number in a range: for `FloatRange`, nan is in every range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is no finite number", param, ctx)
        return number


def count(number: int, one: str, many: str) -> str:
    """Return a number with its noun: `no scenarios`, `1 scenario`, `2 scenarios`."""
    return f"{number or 'no'} {one if number == 1 else many}"


def print_json(answer: object) -> None:
    """Print one JSON document."""
    click.echo(msgspec.json.format(msgspec.json.encode(answer), indent=2).decode())


def explains_errors(function: Callable[..., int]) -> Callable[..., int]:
    """Print the errors of a command (what, where, what to do next) instead of a traceback, and return status 1."""

    @wraps(function)
    def run(*arguments: Any, **options: Any) -> int:
        try:
            return function(*arguments, **options)
        except (ClusterError, HarnessError) as problem:
            click.echo(printable(str(problem)), err=True)
            return 1
        except OSError as problem:
            click.echo(printable(_of_file(problem)), err=True)
            return 1
        except KeyboardInterrupt:
            click.echo("interrupted; everything that this command started is stopped", err=True)
            return 130

    return run


def refuses_bad_input(function: Callable[..., int]) -> Callable[..., int]:
    """Print a typed error of an input and return status 2; a defect keeps its traceback.

    Inputs contain texts of a cluster's tenants: what the command prints controls no terminal.
    """

    @wraps(function)
    def run(*arguments: Any, **options: Any) -> int:
        try:
            with printable_streams():
                return function(*arguments, **options)
        except (HarnessError, ValueError) as problem:
            if not isinstance(problem, HarnessError | BadInputError):
                raise
            click.echo(printable(str(problem)), err=True)
            return 2
        except OSError as problem:
            click.echo(printable(_of_file(problem)), err=True)
            return 2

    return run


def _of_file(problem: OSError) -> str:
    """Return the text of the error of a file that cannot be read or written. Any other error is a defect: raise it."""
    if problem.filename is None:
        raise problem
    return (
        f"{problem.filename}: {problem.strerror}\n  do next: name another file or folder, or permit access to this one"
    )
