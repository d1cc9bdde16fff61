"""Gather what the collection needs of a run: its policies and files, as lint judges them, and its templates.

This module is part of the pytest plugin. It starts nothing; it imports the scheduler's lint when a policy is named.

The known words of reasons come from string literals in the scheduler's source, which is read when the first scenario
names a reason. A word may also be a name or a number of the scenario.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import distribution
from ..api import spaces
from ..api.capabilities import Capability
from ..api.errors import PolicyRefusedError, TemplateError
from ..api.kinds import Kind
from ..gherkin.tables import nearest
from ..gherkin.things import (
    ADMISSION_CHECK,
    JOBS_OF,
    KUEUE_QUEUES_OF,
    NODE,
    NODES_OF,
    POD,
    POLICY,
    POLICY_OF,
    PRIORITY_CLASS,
    QUEUE,
    QUEUES_OF,
    WORKLOAD,
    FileContents,
    RunFacts,
)
from ..options import Options
from ..scenario import manifests, own_work
from ..scenario.session import template_folders
from ..scenario.templates import Templates
from ..scheduler import lint
from ..scheduler.model.input_files import read_text
from ..schedulers import Adapter, Own
from ..terminal import short_path

_ROOMS = ("actions", "framework", "model", "placement", "plugins", "preemption", "reasons")
_TELLING = 3
"""Letters of the shortest word that tells one reason from another; shorter words may be names of the scenario."""
_WORD = re.compile(r"[^\W\d_][\w./-]*")


def problem(text: str, names: Iterable[str]) -> str:
    """Return the problem of the first word that the scheduler never publishes; empty if there is none."""
    known, own = _words(), {word for name in names for word in _split(name)}
    own |= {part for name in own for part in re.split(r"[./-]", name) if part}  # a reason is searched for any text
    if not any(word in own or len(word) >= _TELLING for word in _split(text)):
        return f"nearly every reason has the text {text!r}: name a word of the reason, such as capability"
    for word in _split(text):
        if word not in known and word not in own:
            return f"the scheduler publishes no reason with the word {word!r}{nearest(word, known | own, 0.7)}"
    return ""


@functools.cache
def _words() -> frozenset[str]:
    files = (file for room in _ROOMS for file in distribution.folder("scheduler").joinpath(room).rglob("*.py"))
    return frozenset(word for file in files for text in _texts(file.read_text("utf-8")) for word in _split(text))


def _texts(source: str) -> Iterator[str]:
    """Yield the string literals of a module, without its docstrings."""
    tree = ast.parse(source)
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.value


def _split(text: str) -> list[str]:
    return [word.lower().rstrip(".-/") for word in _WORD.findall(text)]


def of_run(options: Options, root: Path) -> RunFacts:
    """Return the facts of a run with this scheduler and the folders that these options name.

    Args:
        options: The checked options.
        root: The root of the run, where files that a sentence names may be.
    """
    templates = Templates(template_folders(options), {}, options.policies)
    own = any(next(folder.rglob("*.j2"), None) for folder in options.templates[:-1])
    files = Files(root, options.adapter, options.scheduler_binaries)

    @functools.cache
    def policy(name: str, lints: bool) -> str:
        try:
            text = templates.policy(name)
        except TemplateError:
            known = sorted({path.stem for folder in templates.policies for path in folder.glob("*.yaml")})
            return f"there is no policy {name!r}{nearest(name, known)}; there are: {', '.join(known)}"
        errors = _errors(lint.lint(text, f"{name}.yaml")) if lints and files.judged else ""
        if lints and not files.judged:
            errors = _refusal(options.adapter, text, f"{name}.yaml")
        return f"the scheduler rejects the policy {name!r}:{errors}" if errors else ""

    def unread(policies: Sequence[tuple[str, str]], folder: Path) -> Mapping[str, str]:
        if not files.lints:
            return {}
        texts = [
            templates.policy(name) if kind == POLICY else read_text(files.find(name, folder))
            for kind, name in policies
            if not (policy(name, False) if kind == POLICY else files.problem(kind, name, folder))
        ]
        if not policies:
            texts = [read_text(options.policy) if options.policy else templates.policy("default")]
        found = [_unread(text) for text in texts]
        named = " and ".join(f'"{name}"' for _, name in policies) or "of the run"
        return {
            setting: f"has no effect under the policy {named}: {remedy}"
            for setting, remedy in (found[0].items() if found else ())
            if all(setting in other for other in found)
        }

    preexisting = {PRIORITY_CLASS} if options.settings.kind == "existing" else ()
    reason = problem if files.judged else (lambda _text, _names: "")
    return RunFacts(
        policy,
        reason,
        files.problem,
        unread,
        files.contents,
        own_templates=own,
        lacking=frozenset(it for it in Capability if options.adapter.missing(it) is not None),
        preexisting=frozenset(preexisting),
    )


def problem_of_policy(options: Options) -> str:
    """Return why the scheduler under test cannot read the policy that `--policy` names; empty if it can."""
    if options.policy is None or not isinstance(options.adapter, Own):
        return ""
    try:
        errors = _errors(lint.lint(manifests.read(options.policy), short_path(options.policy)))
    except manifests.ManifestError as problem:
        errors = f"\n    {problem}"
    where = "  where: --policy (schedspec_policy in the ini file)\n  do next: correct the file, or name another one"
    return f"the scheduler rejects the policy of the run:{errors}\n{where}" if errors else ""


_OF_KUEUE = {"LocalQueue": QUEUE, "WorkloadPriorityClass": PRIORITY_CLASS, "AdmissionCheck": ADMISSION_CHECK}
"""Kinds of Kueue's objects that sentences name."""
_SPACE = "scenario"


class Files:
    """The files that sentences name, each judged once, as the scheduler under test reads them.

    Attributes:
        lints: Whether the scheduler reads policy files in Volcano's format.
        judged: Whether lint knows what the scheduler accepts: the scheduler is ours.
    """

    def __init__(self, root: Path, adapter: Adapter, programs: Path | None = None) -> None:
        self._root, self._adapter, self._programs = root, adapter, programs
        self.lints, self.judged = adapter.missing(Capability.POLICY_FILES) is None, isinstance(adapter, Own)
        self.problem = functools.cache(self._problem)

    def find(self, name: str, folder: Path) -> Path:
        """Return the path of a file. Raises manifests.ManifestError."""
        return manifests.find(name, manifests.folders_of(folder, self._root))

    def contents(self, kind: str, name: str, folder: Path) -> FileContents:
        """Return what a file creates, and what its work needs."""
        if kind == KUEUE_QUEUES_OF:
            queues = [it.object for it in manifests.kueue_queues(self.find(name, folder), _SPACE)]
            return FileContents([(_OF_KUEUE[it["kind"]], _named(it)) for it in queues if it["kind"] in _OF_KUEUE])
        if kind in (QUEUES_OF, NODES_OF):
            read, thing = (manifests.queues, QUEUE) if kind == QUEUES_OF else (manifests.nodes, NODE)
            return FileContents([(thing, it.object["metadata"]["name"]) for it in read(self.find(name, folder))])
        if kind != JOBS_OF:
            return FileContents()
        found = own_work.of_file(self.find(name, folder))
        made = [(WORKLOAD, work) for work in own_work.names(found)]
        made += [(POD, pod) for pod in own_work.pods(found)]
        made += [(PRIORITY_CLASS, it.item["metadata"]["name"]) for it in found if it.kind is Kind.PRIORITYCLASS]
        of_kueue = self._adapter.missing(Capability.KUEUE_QUEUES) is None
        return FileContents(made, [(QUEUE, queue, it) for it, queue in own_work.queues(found, of_kueue=of_kueue)])

    def _problem(self, kind: str, name: str, folder: Path) -> str:
        """Return why the sentence of this kind cannot use the file; empty if it can."""
        try:
            path = self.find(name, folder)
            text = manifests.read(path)
            if kind in (NODES_OF, QUEUES_OF):
                (manifests.nodes if kind == NODES_OF else manifests.queues)(path)
                definitions = self._adapter.judging_definitions(self._programs)
                errors = _errors(lint.lint_manifests([(str(path), text)], definitions))
                judges = self._adapter.judges(self._programs)
                return f"the {kind.split(maxsplit=1)[0]} of {name!r} are refused by {judges}:{errors}" if errors else ""
            if kind == POLICY_OF:
                manifests.policy(path)
            if kind == JOBS_OF:
                own_work.of_file(path)
            if kind == KUEUE_QUEUES_OF:
                manifests.kueue_queues(path)
        except manifests.ManifestError as problem:
            return str(problem)
        errors = _errors(lint.lint(text, str(path))) if kind == POLICY_OF and self.judged else ""
        return f"the scheduler rejects the policy of {name!r}:{errors}" if errors else ""


def _named(obj: dict[str, Any]) -> str:
    """Return the name by which the sentences of a scenario call an object of a file."""
    space = spaces.space_of(_SPACE, obj["metadata"].get("namespace", ""))
    return f"{space}/{obj['metadata']['name']}" if space else str(obj["metadata"]["name"])


@functools.cache
def _unread(text: str) -> Mapping[str, str]:
    """Return the settings of queues that nothing in a policy reads, each with what to do."""
    return lint.unread_settings(text)


def _refusal(adapter: Adapter, text: str, source: str) -> str:
    """Return why another scheduler cannot read a policy; empty if it can."""
    try:
        adapter.read(text)
    except PolicyRefusedError as refused:
        return f"\n    {source}: {' '.join(str(refused).split())}"
    return ""


def _errors(findings: Iterable[lint.LintFinding]) -> str:
    return "".join(
        f"\n    {found.source}:{found.line}: {found.field}: {found.text}; {found.remedy}"
        for found in findings
        if found.is_error
    )
