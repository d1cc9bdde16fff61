"""`schedspec check`: find mistakes in features, policies and queues without a cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from .. import distribution
from ..gherkin.documents import WRONG_NAME, is_nearly_feature
from ..scheduler.lint import lint
from ..scheduler.model.input_files import read_bytes, read_text
from ..schedulers import Adapter, Own, find
from . import collected, repository, testing
from .answers import count, explains_errors, output_option, print_json

FEATURES, POLICY, QUEUES = "features", "policy", "queues"
_POLICY = re.compile(
    r"(?:^|[{,])\s*[\"']?(actions|tiers|default_scheduler_conf|[\w.-]+\.conf|\w*scheduler_config_override)[\"']?\s*:",
    re.MULTILINE,
)
_KIND = re.compile(r"^[ \t{-]*[\"']?kind[\"']?\s*:\s*[\"']?(?P<kind>[A-Z]\w*)", re.MULTILINE)
_MANIFEST = re.compile(r"[\"']?\bkind[\"']?\s*:\s*[\"']?[A-Z]")


@click.command("check")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--ours", is_flag=True, help="Leave out PATHS that belong to other tools, as the hook of pre-commit does."
)
@click.option("--scheduler", default="", help="The scheduler under test; default: that of the ini file, else ours.")
@click.option(
    "--scheduler-binaries",
    "programs",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder with the programs of that scheduler, and its definitions in crds/.",
)
@click.option("--lsp", is_flag=True, help="Serve an editor by the Language Server Protocol, on stdin and stdout.")
@output_option
@explains_errors
def check_command(
    paths: tuple[Path, ...], scheduler: str, programs: Path | None, output: str, *, ours: bool, lsp: bool
) -> int:
    """Check features, policies and queues without a cluster: sentences, tables, names, tags, examples; YAML by lint.

    PATHS are feature files, folders of them, policies and manifests of Queues; the content decides how a file is
    checked. Without PATHS, the command checks the features and policies of the repository. Queues are checked against
    the policies among PATHS, else against the default policy, and by the definitions of the scheduler under test. What
    our scheduler rejects in a policy is only a warning for another scheduler. For pre-commit, .pre-commit-hooks.yaml
    has the hook `schedspec-check`.

    \b
    Examples:
      schedspec check
      schedspec check features/lent.feature policies/team.yaml -o json
      schedspec check volcano-scheduler.conf queues.yaml
      schedspec check --lsp
    """
    options = [f"--scheduler={scheduler}"] * bool(scheduler) + [f"--scheduler-binaries={programs}"] * bool(programs)
    if lsp:
        _serve_editor(paths, options, output, ours=ours)
        return 0
    given = [path for path in paths if belongs_to_us(path)] if ours else paths
    if ours and not given:
        return 0
    kinds = {path: kind_of(path) for path in given or _of_the_repository()}
    features = [path for path, kind in kinds.items() if kind == FEATURES]
    policies = [path for path, kind in kinds.items() if kind == POLICY]
    queues = [path for path, kind in kinds.items() if kind == QUEUES]
    found, checked = _features(features, options) if features else ([], collected.Collected())
    adapters = {path: _adapter(path, scheduler) for path in (*policies, *queues)}
    found += [problem for path in policies for problem in _policy(path, adapters[path])]
    found += _queues({path: adapters[path].judging_definitions(programs) for path in queues}, policies)
    found += [_unknown(path) for path, kind in kinds.items() if not kind]
    errors = [problem for problem in found if problem["kind"] == "error"]
    if output == "json":
        print_json(found)
    else:
        for problem in found:
            place = f"{problem['file']}:{problem['line']}: " if problem["file"] else ""
            click.echo(f"{place}{'' if problem['kind'] == 'error' else 'warning: '}{problem['text']}")
        for path in queues:
            against, judges = ", ".join(map(str, policies)) or "the default policy", adapters[path].judges(programs)
            click.echo(f"checked {path} as queues against {against}, by {judges}")
        for why, number in sorted(checked.skipped.items()):
            click.echo(f"{count(number, 'scenario is', 'scenarios are')} skipped: {why}")
        refused = len(checked.failures)
        judged = [count(checked.scenarios, "scenario", "scenarios")] if checked.scenarios or not refused else []
        judged += [count(refused, "feature with errors", "features with errors")] if refused else []
        judged += [count(len(policies), "policy", "policies")]
        judged += [count(len(queues), "file of queues", "files of queues")] if queues else []
        click.echo(f"{', '.join(judged)}: {count(len(errors), 'error', 'errors')}")
    return 1 if errors else 0


def _serve_editor(paths: Sequence[Path], options: Sequence[str], output: str, *, ours: bool) -> None:
    if paths or ours or output != "text":
        raise click.UsageError("--lsp checks what the editor opens: name no PATHS, no --ours and no --output")
    try:
        from .language_server import server  # noqa: PLC0415 - it needs an extra
    except ModuleNotFoundError as missing:
        raise click.UsageError(f"--lsp needs {missing.name}: pip install 'schedspec[lsp]'") from None
    server(options).start_io()


def kind_of(path: Path) -> str:
    """Return how to check a file, by its content: `features`, `policy` or `queues`; empty if it is none of them."""
    if path.is_dir() or path.suffix == ".feature":
        return FEATURES
    text = read_bytes(path).decode("utf-8", "replace")
    if _POLICY.search(text):
        return POLICY
    return QUEUES if _MANIFEST.search(text) else ""


def belongs_to_us(path: Path) -> bool:
    """Whether a file is a feature or a policy of a folder of ours, and not of a suite or a tool beside it."""
    home = repository.home_of(path)
    if home is None:
        return False
    if path.is_dir() or path.suffix == ".feature":
        return any(path.resolve().is_relative_to(folder.resolve()) for folder in repository.features_of(home))
    return any(path.resolve() == own.resolve() for own in _own_policies(home))


def _unknown(path: Path) -> dict[str, object]:
    text = "this file is neither a feature, nor a policy (`actions:` and `tiers:`), nor a manifest of a Queue"
    if ".feature" in path.name.lower() or is_nearly_feature(path):
        text = WRONG_NAME
    return {"kind": "error", "file": str(path), "line": 1, "text": text}


def _of_the_repository() -> list[Path]:
    homes = testing.default_paths()
    return [*homes, *(path for home in homes for path in _own_policies(home))]


def _features(paths: Sequence[Path], options: Sequence[str]) -> tuple[list[dict[str, object]], collected.Collected]:
    """Return the problems that pytest's collection reports, and what it collected."""
    found, printed = collected.collect(paths, *options)
    if found is None:
        return [*collected.problems(collected.error_in(printed))], collected.Collected()
    problems = [problem for failure in found.failures for problem in collected.problems(failure)]
    unread = [{"kind": "warning", "file": "", "line": 0, "text": f"no run reads {text}"} for text in found.misnamed]
    return [*problems, *unread], found


def _own_policies(home: Path) -> list[Path]:
    folders = [home / name for name in ("policies", "templates/policies")]
    files = (path for folder in folders if folder.is_dir() for path in sorted(folder.iterdir()))
    found = [path for path in files if path.suffix.lower() in (".yaml", ".yml") and path.is_file()]
    shipped = distribution.folder("templates")
    return [path for path in found if not path.resolve().is_relative_to(shipped) and not _is_of_another_tool(path)]


def _is_of_another_tool(path: Path) -> bool:
    """Whether a file in a folder `policies` has objects that are no policy of ours, for instance Kyverno's."""
    kinds = {found["kind"] for found in _KIND.finditer(read_bytes(path).decode("utf-8", "replace"))}
    return not kinds <= {"ConfigMap", "ConfigMapList", "HelmRelease", "List"}


def _adapter(path: Path, scheduler: str) -> Adapter:
    """Return the adapter of the scheduler that judges a file: the named one, else that of the file's folder of ours.

    Raises:
        AdapterError: there is none of this name.
    """
    home = repository.home_of(path)
    return find(scheduler or (repository.scheduler_of(home) if home is not None else "") or Own.name)


def _policy(path: Path, adapter: Adapter) -> Iterator[dict[str, object]]:
    for problem in _linted(read_text(path), str(path)):
        yield problem if isinstance(adapter, Own) else {**problem, "kind": "warning"}


def _queues(definitions: Mapping[Path, Path | None], policies: Sequence[Path]) -> list[dict[str, object]]:
    """Return the findings on files of queues under each policy, without the findings on the policy itself.

    `definitions` has the folder of the definitions that judge each file; files with the same folder are one cluster's.
    """
    chosen = policies or [distribution.folder("templates") / "policies" / "default.yaml"]
    found: list[dict[str, object]] = []
    for folder in dict.fromkeys(definitions.values()):
        manifests = [(str(path), read_text(path)) for path, by in definitions.items() if by == folder]
        for policy in chosen:
            found += _linted(read_text(policy), str(policy), manifests, folder)
    names = {str(path) for path in definitions}
    unique = {
        (problem["file"], problem["line"], problem["text"]): problem for problem in found if problem["file"] in names
    }
    return list(unique.values())


def _linted(
    text: str, source: str, manifests: Sequence[tuple[str, str]] = (), definitions: Path | None = None
) -> Iterator[dict[str, object]]:
    for flaw in lint(text, source, manifests, definitions):
        kind = "error" if flaw.is_error else "warning"
        what = f"{flaw.field}: {flaw.text}; {flaw.remedy}"
        yield {"kind": kind, "file": flaw.source, "line": flaw.line, "text": what}
