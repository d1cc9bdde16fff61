"""The plan as Markdown, for the summary of a CI step and a comment on a pull request."""

from __future__ import annotations

from ..state.state import render_age
from .answer import Plan
from .text import headline, shown, spans

_MOST = 20
_ESCAPED = str.maketrans({"|": "\\|", "`": "'", "<": "&lt;", "@": "@\u200b", "\n": " "})


def render_markdown(plan: Plan) -> str:
    """Format a plan. Names and reasons come from a cluster: they cannot mention users or end a table."""
    it = plan.subject
    verdict = (
        f"**Worse than permitted:** {'; '.join(plan.failed)}" if plan.failed else "Nothing is worse than permitted."
    )
    lines = [f"### Plan: {_safe(headline(plan.at_once))}", ""]
    lines += [*(f"> {_safe(note)}  " for note in plan.notes), *([""] if plan.notes else []), verdict, ""]
    lines += [f"* {_safe(change)}" for change in plan.changes or ["nothing that decides changes"]]
    lines += _at_once(plan) + _over_load(plan) + _rules(plan)
    lines += ["", "<details><summary>Assumptions</summary>", ""]
    lines += [f"* {_safe(text)}" for text in plan.assumptions]
    lines += [
        f"* state `{_safe(it.state)}` taken {render_age(it.age_seconds)} ago, sha256 `{it.sha256[:16]}`",
        f"* {it.nodes} nodes, {it.queues} queues, {it.pods} pods",
        "",
        "</details>",
    ]
    return "\n".join(lines) + "\n"


def _safe(text: str) -> str:
    return text.translate(_ESCAPED)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    if not rows:
        return []
    lines = ["", f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    lines += [f"| {' | '.join(_safe(cell) for cell in row)} |" for row in rows[:_MOST]]
    return lines + ([f"\n… and {len(rows) - _MOST} more"] if len(rows) > _MOST else [])


def _at_once(plan: Plan) -> list[str]:
    it = plan.at_once
    lines = _table(
        ("evicted at once", "queue", "for", "why"),
        [(one.pod, one.queue, f"{one.preemptor} ({one.preemptor_queue})", one.why) for one in it.evictions],
    )
    lines += _table(("refused", "queue", "why"), [(one.job, one.queue, one.why) for one in it.refused])
    return lines + _table(("starts", "queue", "pods"), [(one.job, one.queue, str(one.pods)) for one in it.starts])


def _over_load(plan: Plan) -> list[str]:
    if not plan.over_load:
        return []
    loads = plan.over_load
    rows: list[tuple[str, ...]] = []
    for number, queue in enumerate(loads[-1].queues):
        sides = [it.queues[number] for it in loads if len(it.queues) > number]
        cells = [
            spans([it.now.get(key) for it in sides], [it.proposed.get(key) for it in sides], unit)
            for key, unit in (("wait_p95", "s"), ("evicted_pods", ""), ("lost_card_hours", ""))
        ]
        rows.append((queue.queue, *cells))
    lines = ["", f"Over the load ({_safe(loads[0].load)}):"]
    lines += _table(("queue", "wait p95", "evicted pods", "lost card-hours"), rows)
    changed: list[tuple[str, ...]] = [
        (one.job, one.queue, f"{shown(one.now, 's')} → {shown(one.proposed, 's')}", one.why)
        for one in loads[-1].changed[:5]
    ]
    lines += _table(("job", "queue", "wait", "why"), changed)
    found: list[tuple[str, ...]] = [(it.rule, it.subject, it.queue, it.text) for it in loads[-1].findings]
    return lines + _table(("monitor", "finds", "queue", "what"), found)


def _rules(plan: Plan) -> list[str]:
    if plan.rules is None:
        return []
    title = plan.rules.problem or f"{plan.rules.scenarios} scenarios, {len(plan.rules.flips)} flip"
    return ["", f"The rules: {_safe(title)}", *(f"* {_safe(it)}" for it in plan.rules.flips[:_MOST])]
