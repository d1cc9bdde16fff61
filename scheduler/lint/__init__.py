"""``scheduler lint FILE… [--queues FILE]…``: all that is wrong with a policy file, and what is legal and almost surely
wrong.

The one rule: an error is what the scheduler would refuse, and fails; a warning is what it would do as written
although hardly anybody means it, and says what to write instead.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from ..policy.loader import PolicyError, read_document
from ..reasons.text import count
from .findings import Finding
from .objects import Manifest, ManifestError, read_objects
from .policy_rules import policy_findings
from .queue_rules import queue_findings

__all__ = ["Finding", "add_arguments", "lint", "main"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line."""
    parser.add_argument("policies", metavar="FILE", nargs="+", help="policy files; - is the standard input")
    parser.add_argument(
        "--queues",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="manifests of Queues, and of Nodes or a List of them, to judge the policy by; may be given several times",
    )
    parser.add_argument("--strict", action="store_true", help="fail on warnings too")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="for people, or for programs")


def main(arguments: argparse.Namespace) -> int:
    """Print every finding.

    0 without errors, 1 with (or, with ``--strict``, with warnings), 2 where a file is unreadable.
    """
    try:
        policies = [_read(name) for name in arguments.policies]
        manifests = [(str(path), path.read_text()) for path in arguments.queues]
    except (OSError, UnicodeDecodeError) as error:
        sys.stderr.write(f"cannot read {getattr(error, 'filename', None) or 'a file'}: {error}\n")
        return 2
    findings = list(dict.fromkeys(it for text, source in policies for it in lint(text, source, manifests)))
    errors = sum(finding.is_error for finding in findings)
    if arguments.output == "json":
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(findings), indent=2).decode() + "\n")
    else:
        for finding in findings:
            sys.stdout.write(finding.render() + "\n")
        sys.stdout.write(f"{count(errors, 'error')}, {count(len(findings) - errors, 'warning')}\n")
    return 1 if errors or (arguments.strict and findings) else 0


def _read(name: str) -> tuple[str, str]:
    """The text of a policy, and what its findings call it."""
    return (sys.stdin.read(), "<stdin>") if name == "-" else (Path(name).read_text(), name)


def lint(policy_text: str, source: str, manifests: Sequence[tuple[str, str]] = ()) -> list[Finding]:
    """All findings on a policy, and on the queues of ``manifests`` (name and text of each file) under it."""
    findings: list[Finding] = []
    document = None
    try:
        document = read_document(policy_text, source)
        findings += policy_findings(document, source)
    except PolicyError as error:
        for problem in error.problems:
            value = f"{problem.value!r}: " if problem.value else ""
            text = f"{value}{problem.text}"
            findings.append(Finding(source, problem.line, problem.field, text, problem.remedy, is_error=True))
    objects = Manifest()
    for name, manifest in manifests:
        try:
            read_objects(manifest, name, objects)
        except ManifestError as error:
            findings.append(Finding(name, error.line, "file", error.problem, error.remedy, is_error=True))
    return findings + queue_findings(objects, document.policy if document is not None else None)
