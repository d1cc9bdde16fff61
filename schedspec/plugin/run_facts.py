"""Gather what the collection needs of a run: its policies, as lint judges them, and its templates.

This module is part of the pytest plugin. It starts nothing; it imports the scheduler's lint when a policy is named.
"""

from __future__ import annotations

import functools

from .. import distribution
from ..api.errors import TemplateError
from ..gherkin.tables import nearest
from ..gherkin.things import PRIORITY_CLASS, RunFacts
from ..options import Options
from ..scenario.session import template_folders
from ..scenario.templates import Templates
from ..schedulers import Own
from . import reason_words


def of_run(options: Options) -> RunFacts:
    """Return the facts of a run with this scheduler and the folders that these options name."""
    templates = Templates(template_folders(options), {}, options.policies)
    own = any(next(folder.rglob("*.j2"), None) for folder in options.templates[:-1])
    judged = isinstance(options.adapter, Own)

    @functools.cache
    def policy(name: str, lints: bool) -> str:
        try:
            text = templates.policy(name)
        except TemplateError:
            known = sorted({path.stem for folder in templates.policies for path in folder.glob("*.yaml")})
            return f"there is no policy {name!r}{nearest(name, known)}; there are: {', '.join(known)}"
        found = distribution.load("scheduler.lint").lint(text, f"{name}.yaml") if lints and judged else ()
        errors = [
            f"\n    {problem.source}:{problem.line}: {problem.field}: {problem.text}; {problem.remedy}"
            for problem in found
            if problem.is_error
        ]
        return f"the scheduler rejects the policy {name!r}:{''.join(errors)}" if errors else ""

    preexisting = {PRIORITY_CLASS} if options.settings.kind == "existing" else ()
    reason = reason_words.problem if judged else (lambda _text, _names: "")
    return RunFacts(policy, reason, own_templates=own, preexisting=frozenset(preexisting))
