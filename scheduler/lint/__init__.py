"""`scheduler lint FILE… [--queues FILE]…`: report errors and likely mistakes in policy files.

An error fails the command: the scheduler rejects the policy, or never settles under it. A warning describes an effect
of the policy that is hardly intended. Both name a remedy.

`policy_rules`, `queue_rules` and `resource_rules` have the rules; `objects` reads the manifests,
which `schemas` judges.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import click
import msgspec

from ..model.input_files import read_text
from ..model.printable import OUTPUT
from ..policy.loader import PolicyError, read_document
from ..reasons.text import count
from .objects import LintFinding, Manifest, ManifestError, read_objects
from .policy_rules import policy_findings
from .queue_rules import queue_findings, unread
from .resource_rules import resource_findings

__all__ = ["ARGUMENTS", "LintFinding", "lint", "lint_manifests", "main", "unread_settings"]


ARGUMENTS: tuple[click.Parameter, ...] = (
    click.Argument(["policies"], metavar="FILE…", nargs=-1, required=True),
    click.Option(
        ["--queues"],
        metavar="FILE",
        type=click.Path(path_type=Path),
        multiple=True,
        help="Manifests of Queues, and of Nodes or a List of them, to judge the policy by; may be given several times.",
    ),
    click.Option(
        ["--definitions"],
        metavar="DIR",
        type=click.Path(path_type=Path),
        help="The definitions by which Queues are judged, for instance Volcano's; without it, those of this scheduler.",
    ),
    click.Option(["--strict"], is_flag=True, help="Fail on warnings too."),
    OUTPUT,
)


def main(arguments: SimpleNamespace) -> int:
    """Print all findings.

    Returns:
        0 without errors, 1 with errors (or, with `--strict`, warnings), 2 if a file is unreadable.
    """
    try:
        policies = [_read(name) for name in arguments.policies]
        manifests = [(str(path), _text(path)) for path in arguments.queues]
    except OSError as error:
        sys.stderr.write(f"cannot read {error.filename}: {error.strerror}\n")
        return 2
    findings = list(
        dict.fromkeys(
            finding for text, source in policies for finding in lint(text, source, manifests, arguments.definitions)
        )
    )
    errors = sum(finding.is_error for finding in findings)
    if arguments.output == "json":
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(findings), indent=2).decode() + "\n")
    else:
        for finding in findings:
            sys.stdout.write(finding.render() + "\n")
        sys.stdout.write(f"{count(errors, 'error')}, {count(len(findings) - errors, 'warning')}\n")
    return 1 if errors or (arguments.strict and findings) else 0


def _read(name: str) -> tuple[str, str]:
    """Return the text of a policy, and its name in findings."""
    return (sys.stdin.read(), "<stdin>") if name == "-" else (_text(Path(name)), name)


def _text(path: Path) -> str:
    try:
        return read_text(path, pipes=True)
    except UnicodeDecodeError as error:
        raise OSError(errno.EILSEQ, f"not UTF-8: {error.reason}", str(path)) from None


def lint(
    policy_text: str, source: str, manifests: Sequence[tuple[str, str]] = (), definitions: Path | None = None
) -> list[LintFinding]:
    """Return all findings on a policy.

    Args:
        policy_text: The policy file.
        source: Name of the file in findings.
        manifests: Name and text of files with queues and nodes, which are checked under the policy.
        definitions: Folder of the definitions by which these are judged; None: ours.
    """
    findings: list[LintFinding] = []
    document = None
    try:
        document = read_document(policy_text, source)
        findings += policy_findings(document, source)
    except PolicyError as error:
        for problem in error.problems:
            value = f"{problem.value!r}: " if problem.value else ""
            text = f"{value}{problem.text}"
            findings.append(LintFinding(source, problem.line, problem.field, text, problem.remedy, is_error=True))
    objects, refused = _objects_of(manifests, definitions)
    if document is not None:
        findings += resource_findings(document, source, objects)
    own = refused + queue_findings(objects, document.policy if document is not None else None)
    return findings + sorted(own, key=lambda finding: (finding.source, finding.line))


def lint_manifests(manifests: Sequence[tuple[str, str]], definitions: Path | None = None) -> list[LintFinding]:
    """Return all findings on queues and nodes that hold under every policy; the arguments are those of `lint`."""
    objects, findings = _objects_of(manifests, definitions)
    return findings + queue_findings(objects, None)


_NO_NETWORK = "every job with it waits; add the plugin network-topology-aware, or leave the column empty"


def unread_settings(policy_text: str) -> dict[str, str]:
    """Return the settings of queues and jobs that nothing in a policy reads, each with a remedy.

    A refused policy has none.
    """
    try:
        policy = read_document(policy_text, "policy").policy
    except PolicyError:
        return {}
    found = {name: setting.remedy for name, setting in unread(policy).items()}
    option = policy.plugin("network-topology-aware")
    if option is None or not option.enabled("enabledHyperNodeGradient"):
        found |= dict.fromkeys(("required", "preferred", "partition required"), _NO_NETWORK)
    return found


def _objects_of(manifests: Sequence[tuple[str, str]], definitions: Path | None) -> tuple[Manifest, list[LintFinding]]:
    """Return the queues and nodes of these manifests, and the findings on unreadable ones."""
    objects, findings = Manifest(), []
    for name, manifest in manifests:
        try:
            read_objects(manifest, name, objects, definitions)
        except ManifestError as error:
            findings.append(LintFinding(name, error.line, "file", error.problem, error.remedy, is_error=True))
    return objects, objects.findings + findings
