"""`schedspec init`, `check`, `steps` and `features`: for who writes scenarios."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import msgspec

from .. import distribution
from ..gherkin import catalogue
from . import collected
from .answers import count, explains_errors, output_option, say_json

_BEGINNING = Path(__file__).parent / "beginning"
"""What `init` writes, by the path in the new project; `dot-` stands for a dot."""


@click.command("init")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=Path())
@explains_errors
def init_command(folder: Path) -> int:
    """Write a feature, a policy, a conftest and a workflow, to begin with. What is there already stays as it is.

    \b
    Examples:
      schedspec init && pytest
      schedspec init ../queues
    """
    for source in sorted(path for path in _BEGINNING.rglob("*") if path.is_file() and path.suffix != ".pyc"):
        name = source.relative_to(_BEGINNING).as_posix().replace("dot-", ".").removesuffix(".txt")
        target = folder / name
        if target.exists():
            click.echo(f"is there     {target}")
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(source.read_text("utf-8"), "utf-8")
        click.echo(f"written      {target}")
    where = "" if folder == Path() else f" in {folder}"
    click.echo(f"next{where}: pytest --cluster embedded -v")
    return 0


@click.command("check")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
@output_option
@explains_errors
def check_command(paths: tuple[Path, ...], output: str) -> int:
    """Check features and policies without a cluster: sentences, tables, names, tags, examples, policies by lint.

    Paths are feature files, policy files and folders; without any, the project's. As a pre-commit hook:
    .pre-commit-hooks.yaml has `schedspec-check`.

    \b
    Examples:
      schedspec check
      schedspec check features/lent.feature policies/team.yaml -o json
    """
    policies = [path for path in paths if path.suffix in (".yaml", ".yml")]
    features = [path for path in paths if path not in policies]
    found, checked = _features(features) if features or not paths else ([], 0)
    if not paths:
        policies = _own_policies()
    found += [problem for path in policies for problem in _policy(path)]
    errors = [it for it in found if it["kind"] == "error"]
    if output == "json":
        say_json(found)
    else:
        for it in found:
            place = f"{it['file']}:{it['line']}: " if it["file"] else ""
            click.echo(f"{place}{'' if it['kind'] == 'error' else 'warning: '}{it['text']}")
        judged = f"{count(checked, 'scenario', 'scenarios')}, {count(len(policies), 'policy', 'policies')}"
        click.echo(f"{judged}: {count(len(errors), 'error', 'errors')}")
    return 1 if errors else 0


def _features(paths: Sequence[Path]) -> tuple[list[dict[str, object]], int]:
    """Problems of what pytest collects, and how many scenarios there are."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "-n0"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "collected.json"
        done = subprocess.run(
            [*command, "-p", "schedspec.plugin", "-p", collected.__name__, *map(str, paths)],
            env={**distribution.environment(), collected.VARIABLE: str(file)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        said = msgspec.json.decode(file.read_bytes(), type=collected.Collected) if file.is_file() else None
    if said is None:
        return [{"kind": "error", "file": "", "line": 0, "text": done.stdout.strip()}], 0
    return [problem for failure in said.failures for problem in _problems(failure)], said.scenarios


def _problems(failure: str) -> Iterator[dict[str, object]]:
    """`file:line: text`, where a text may go on in indented lines; anything else is one problem."""
    begun = re.compile(r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+): (?P<text>.*(?:\n[ \t].*)*)", re.MULTILINE)
    places = list(begun.finditer(failure))
    for it in places:
        yield {"kind": "error", "file": it["file"], "line": int(it["line"]), "text": it["text"]}
    if not places:
        yield {"kind": "error", "file": "", "line": 0, "text": failure}


def _own_policies() -> list[Path]:
    found = [path for folder in ("policies", "templates/policies") for path in sorted(Path(folder).glob("*.yaml"))]
    return [path for path in found if not path.resolve().is_relative_to(distribution.folder("templates"))]


def _policy(path: Path) -> Iterator[dict[str, object]]:
    for it in distribution.load("scheduler.lint").lint(path.read_text("utf-8"), str(path)):
        kind = "error" if it.is_error else "warning"
        yield {"kind": kind, "file": it.source, "line": it.line, "text": f"{it.field}: {it.text}; {it.remedy}"}


@click.command("steps")
@click.option("--markdown", is_flag=True, help="As tables, for a page.")
@click.option("--language", default="", metavar="CODE", help="Only those of one language: en or zh-CN.")
@click.argument("words", nargs=-1)
@output_option
@explains_errors
def steps_command(markdown: bool, language: str, words: tuple[str, ...], output: str) -> int:
    """List the sentences that scenarios can use, with what they mean and the columns of their tables.

    WORDS leave those that have all of them, in the sentence or in what it means.

    \b
    Examples:
      schedspec steps evicted
      schedspec steps --markdown > sentences.md
      schedspec steps -o json | jq -r '.[].sentence'
    """
    wanted = [word.lower() for word in words]
    found = [
        it
        for it in catalogue.sentences()
        if (not language or it.language == language)
        and all(word in f"{it.sentence} {it.meaning}".lower() for word in wanted)
    ]
    if output == "json":
        say_json(found)
    else:
        click.echo(catalogue.markdown(found) if markdown else catalogue.text(found))
    return 0 if found else 1


@click.command("features")
def features_command() -> int:
    """Print the folder of the features that come with schedspec: what any scheduler can be held to.

    \b
    Examples:
      cp -r "$(schedspec features)" . && pytest features/gang --cluster embedded
    """
    click.echo(distribution.folder("features"))
    return 0
