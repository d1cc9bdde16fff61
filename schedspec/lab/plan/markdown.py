"""The plan as Markdown, for the summary of a CI step and a comment on a pull request."""

from __future__ import annotations

from ...scheduler.model.printable import printable
from ...scheduler.reasons.text import count
from ...virtual.state.state import render_age
from .answer import Plan
from .text import decider_of, grouped, headline_of, queue_line, shown, spans

_MAX = 20
_ESCAPED = str.maketrans(
    {"|": "\\|", "`": "'", "<": "&lt;", "@": "@\u200b", "#": "#\u200b", "[": "\\[", "*": "\\*", "\n": " "}
)


def render_markdown(plan: Plan) -> str:
    """Format a plan. Names and reasons come from a cluster: once escaped, they are text, no links and no tables."""
    subject = plan.subject
    verdict = "Nothing is worse than permitted." if plan.conditions else "Not judged: no condition of `--fail-on`."
    if plan.failed:
        verdict = f"**Worse than permitted:** {'; '.join(plan.failed)}"
    who = f" by {plan.decided_by}" if plan.decided_by else ""
    lines = [f"### Plan{_safe(who)}: {_safe(headline_of(plan))}", ""]
    if plan.decided_by:
        lines += [f"Decided by {_safe(decider_of(plan))}.", ""]
    lines += [*(f"> {_safe(note)}  " for note in plan.notes), *([""] if plan.notes else []), verdict, ""]
    lines += [f"* {_safe(change)}" for change in plan.changes or ["no change that affects decisions"]]
    lines += _at_once(plan) + _over_load(plan) + _rules(plan)
    lines += ["", "<details><summary>Assumptions</summary>", ""]
    lines += [f"* {_safe(text)}" for text in plan.assumptions]
    lines += [
        f"* state `{_safe(subject.state)}` taken {render_age(subject.age_seconds)} ago, sha256 `{subject.sha256[:16]}`",
        f"* {count(subject.nodes, 'node')}, {count(subject.queues, 'queue')}, {count(subject.pods, 'pod')}",
        "",
        "</details>",
    ]
    return "\n".join(map(plan.named, lines)) + "\n"


def _safe(text: str) -> str:
    return printable(text).translate(_ESCAPED).replace("://", ":\u200b//").replace("www.", "www\u200b.")


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    if not rows:
        return []
    lines = ["", f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    lines += [f"| {' | '.join(_safe(cell) for cell in row)} |" for row in rows[:_MAX]]
    return lines + ([f"\n… and {len(rows) - _MAX} more"] if len(rows) > _MAX else [])


def _at_once(plan: Plan) -> list[str]:
    decisions = plan.at_once
    lines = [f"* {_safe(queue_line(row, plan.subject.resource))}" for row in decisions.queues]
    lines = ["", "At once:", "", *lines] if lines else []
    evicted = [
        (one.pod, one.queue, f"{one.preemptor} ({one.preemptor_queue})", plan.reason_in_runs(one))
        for one in decisions.evictions
    ]
    lines += _table(("evicted at once", "queue", "for", "why"), grouped(evicted, "pod"))
    lines += _table(("refused", "queue", "why"), grouped(
        ((one.job, one.queue, one.why) for one in decisions.refused), "job"
    ))  # fmt: skip
    return lines + _table(("starts", "queue", "pods"), grouped(
        ((one.job, one.queue, f"{one.pods}{plan.in_runs(one.runs)}") for one in decisions.starts), "job"
    ))  # fmt: skip


def _over_load(plan: Plan) -> list[str]:
    if not plan.over_load:
        return []
    loads = plan.over_load
    rows: list[tuple[str, ...]] = []
    for number, queue in enumerate(loads[-1].queues):
        sides = [load.queues[number] for load in loads if len(load.queues) > number]
        cells = [
            spans([side.now.get(key) for side in sides], [side.proposed.get(key) for side in sides], unit)
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
    found: list[tuple[str, ...]] = [
        (finding.rule, finding.subject, finding.queue, finding.text) for finding in loads[-1].findings
    ]
    return lines + _table(("monitor", "finds", "queue", "what"), found)


def _rules(plan: Plan) -> list[str]:
    if plan.rules is None:
        return []
    title = plan.rules.problem or f"{count(plan.rules.scenarios, 'scenario')}, {count(len(plan.rules.flips), 'flip')}"
    return ["", f"The rules: {_safe(title)}", *(f"* {_safe(flip)}" for flip in plan.rules.flips[:_MAX])]
