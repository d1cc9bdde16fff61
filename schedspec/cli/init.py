"""`schedspec init`: write a first feature, a policy and a workflow into a repository.

In an empty repository the files are at its root. Any other repository gets one new folder (`queues/`) with its own ini
file: `pytest queues` runs the features, and plain `pytest` collects none of them. Of the existing files, only
`.gitignore` is changed: it is extended.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from ..clusters.protocol import ClusterError
from ..terminal import top_of
from . import published, repository
from .answers import explains_errors

_BEGINNING = Path(__file__).parent / "beginning"
_DEFAULT_NAME = "queues"
_WORKFLOW = ".github/workflows/{}.yml"
_ANY_SOURCE = "name what it installs with --action OWNER/REPO@COMMIT, or --wheel FILE or URL"
_OTHER_SOURCE = "install by the Action instead (--action OWNER/REPO@COMMIT), or name a URL with --wheel"
_PLAIN = re.compile(r"[\w./-]+")
"""Names that need no quoting in a shell or in a workflow."""
_TESTS = ("conftest.py", "test_*.py", "*_test.py", "*.feature")
_ACTION = re.compile(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}")


class InitError(ClusterError):
    """The options do not fit the repository, or an option has an invalid value."""


@dataclass(frozen=True, slots=True)
class Planned:
    """One file of the plan. `content` is its whole new content."""

    path: Path
    content: bytes

    @property
    def verb(self) -> str:
        """The word that `init` prints before the path."""
        if not self.path.is_file():
            return "written"
        return "extended" if self.path.read_bytes() != self.content else "unchanged"

    def write(self) -> None:
        """Write the file; create its folder."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(self.content)

    def diff(self) -> str:
        """Return the change in the format of `diff -u`; empty if the file does not change."""
        if self.path.suffix == ".whl":
            return "" if self.path.is_file() else f"new file {self.path} ({len(self.content)} bytes)\n"
        present = self.path.read_text("utf-8").splitlines(keepends=True) if self.path.is_file() else []
        names = (str(self.path) if present else os.devnull, str(self.path))
        return "".join(difflib.unified_diff(present, self.content.decode().splitlines(keepends=True), *names))


@click.command("init")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=Path())
@click.option(
    "--into", metavar="NAME", help="The folder for all files (default: queues, unless the repository is empty)."
)
@click.option("--dry-run", is_flag=True, help="Write nothing; show what would change, as a diff.")
@click.option("--action", metavar="OWNER/REPO@COMMIT", help="The Action that the workflow uses.")
@click.option("--wheel", metavar="FILE|URL", help="The wheel that the workflow installs.")
@explains_errors
def init_command(folder: Path, into: str | None, dry_run: bool, action: str | None, wheel: str | None) -> int:
    """Write a first feature, a policy and a workflow. Existing files are not changed; .gitignore is extended.

    The workflow uses the Action or the wheel from which this schedspec was installed, unless an option names another. A
    second --into gets a workflow of its own.

    \b
    Examples:
      schedspec init && schedspec test --cluster embedded
      schedspec init --into scheduling/specs --dry-run
      schedspec init --action OWNER/schedspec@0123456789abcdef0123456789abcdef01234567
    """
    home = _home(folder, into)
    origin, refused = _origin(action, wheel), ""
    if origin.wheel is not None and (refused := repository.why_no_file(home / origin.wheel.name, origin.wheel)):
        if wheel is not None:
            raise InitError(f"the wheel cannot be committed: {refused}", f"--wheel {wheel}", _OTHER_SOURCE)
        origin = repository.Origin(action=published.recorded())
    for change in _plan(folder, home, origin):
        if dry_run:
            click.echo(change.diff(), nl=False)
            continue
        verb = change.verb
        click.echo(f"{verb:12} {change.path}")
        if verb != "unchanged":
            change.write()
        if why := repository.why_no_file(change.path, change.path):
            click.echo(f"             git leaves it out, so that no other checkout has it: {why}")
    options_file = repository.options_file(home)
    if options_file is not None and not repository.is_home(home):
        click.echo(f"{options_file} has options of pytest: add `schedspec_features` and `schedspec_steps` there")
    if origin == repository.Origin():
        why = f"the wheel cannot be committed ({refused}); {_OTHER_SOURCE}" if refused else _ANY_SOURCE
        click.echo(f"no workflow: {why}")
    elif refused:
        click.echo(f"the workflow uses the Action {origin.action}: the wheel cannot be committed ({refused})")
    if not dry_run:
        run = "pytest" if home == Path() else f"pytest {home}"
        click.echo(f"next: {run} --cluster simulated -v     (seconds; then --cluster embedded, on a real API server)")
    return 0


def _home(folder: Path, into: str | None) -> Path:
    """Return the folder for the files."""
    if into is not None:
        home = folder / into
        if not _PLAIN.fullmatch(into):
            raise InitError(
                f"{into!r} is not the plain name of a folder", "--into", "write letters, digits, - _ . and /"
            )
        if ".git" in home.parts:
            raise InitError("git keeps its own files there", str(home), "name another folder with --into")
        if file := next((path for path in (home, *home.parents) if path.is_file()), None):
            raise InitError("a file has this name", str(file), "name another folder with --into")
        if not home.resolve().is_relative_to(top_of(folder.resolve())):
            raise InitError("the folder is outside of the repository", str(home), "name a folder of it with --into")
        if home != folder and repository.options_file(home) and not repository.is_home(home):
            raise InitError("the folder has pytest options of its own", str(home), "name another folder with --into")
        tests = next((file for name in _TESTS for file in sorted(home.rglob(name))), None)
        if home != folder and tests and not repository.is_home(home):
            why = "the folder has tests of its own, which the new pytest.ini would change"
            raise InitError(why, str(tests), "name another folder with --into")
        return home
    homes = repository.homes(folder) if folder.is_dir() else []
    if homes:
        return homes[0]
    if repository.is_empty(folder):
        return folder
    return folder / ("schedspec-features" if (folder / _DEFAULT_NAME).exists() else _DEFAULT_NAME)


def _origin(action: str | None, wheel: str | None) -> repository.Origin:
    if action is not None:
        if not _ACTION.fullmatch(action):
            raise InitError(
                "an Action is OWNER/REPOSITORY@COMMIT, with the whole commit", f"--action {action}", "name an Action"
            )
        return repository.Origin(action=action)
    if wheel is not None and wheel.startswith("https://"):
        return repository.Origin(url=wheel)
    if wheel is not None:
        if not Path(wheel).is_file():
            raise InitError("there is no such file", f"--wheel {wheel}", "build one: python -m pip wheel --no-deps .")
        return repository.Origin(wheel=Path(wheel))
    found = repository.origin_of("schedspec")
    return repository.Origin(action=published.recorded()) if found == repository.Origin() else found


def _plan(folder: Path, home: Path, origin: repository.Origin) -> Iterator[Planned]:
    """Yield all files in the order of writing. Existing files keep their content; .gitignore is extended."""
    options_file = repository.options_file(home)
    for source in sorted(path for path in (_BEGINNING / "into").rglob("*") if path.is_file() and path.suffix != ".pyc"):
        target = home / source.relative_to(_BEGINNING / "into").as_posix().removesuffix(".txt")
        if target.name != "pytest.ini" or options_file in (None, target):
            yield _keep_or_create(target, source.read_bytes)
    top = top_of(folder)
    inside = Path(os.path.relpath(home.absolute(), top)).as_posix()
    below = "" if inside == "." else f"{inside}/"
    ignore = folder / ".gitignore" if top == folder.absolute() else top / ".gitignore"
    outputs = dict.fromkeys(("/out/", f"/{below}out/"))  # results are where a run was started: at the root or inside
    yield Planned(ignore, _ignored(ignore, [*outputs, "__pycache__/", ".pytest_cache/"]))
    if origin == repository.Origin():
        return
    words = {
        "NAME": "Queues" if inside in (".", _DEFAULT_NAME) else f"Queues of {inside}",
        "INTO": "features" if inside == "." else inside,
        "OUT": f"{below}out",
        "BRANCH": repository.branch_of(top),
        "ACTION": origin.action,
    }
    words["WHEEL"] = f"'{origin.url}'"
    if origin.wheel is not None:
        yield _keep_or_create(home / origin.wheel.name, origin.wheel.read_bytes)
        words["WHEEL"] = f"./{below}{origin.wheel.name}"
    source = _BEGINNING / ("workflow-action.yml" if origin.action else "workflow-wheel.yml")
    text = re.sub(r"@([A-Z]+)@", lambda match: words[match[1]], source.read_text("utf-8"))
    workflow = _workflow(folder if top == folder.absolute() else top, words["INTO"])
    yield _keep_or_create(workflow, text.encode)


def _workflow(top: Path, into: str) -> Path:
    """Return the workflow of a folder: the existing one that names the folder, else the first name that is free."""
    own = top / _WORKFLOW.format(f"schedspec-{into.replace('/', '-')}")
    usual = top / _WORKFLOW.format("schedspec")
    names = re.compile(rf"features:? (?:(?! --)[^\n])*?(?<![\w/.-]){re.escape(into)}(?![\w/-])")
    is_free = not usual.is_file() or names.search(usual.read_text("utf-8", "replace"))
    return usual if is_free and not own.is_file() else own


def _keep_or_create(path: Path, content: Callable[[], bytes]) -> Planned:
    return Planned(path, path.read_bytes() if path.is_file() else content())


def _ignored(file: Path, wanted: list[str]) -> bytes:
    """Return the content of a .gitignore, extended by the wanted lines that it lacks."""
    text = file.read_text("utf-8") if file.is_file() else ""
    present = {line.strip().strip("/") for line in text.splitlines()}
    lacking = [line for line in wanted if line.strip("/") not in present]
    start = text if not text or text.endswith("\n") else f"{text}\n"
    return (start + "".join(f"{line}\n" for line in lacking)).encode()
