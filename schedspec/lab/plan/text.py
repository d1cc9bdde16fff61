"""The plan on a terminal: at most forty lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ...scheduler.model.printable import printable
from ...scheduler.reasons.text import count
from ...virtual.state.state import render_age
from ..simulate.metrics import scaled
from .answer import SUBMITTED, AtOnce, OverLoad, Plan, PlanInputs, PlannedEviction, QueueAtOnce, QueueChange, pods_of

MAX_LINES = 40
_WIDTH, _LONGEST = 118, 400
_AT_ONCE, _QUEUES, _WAITS, _FLIPS, _NOTES, _CHANGES = 10, 4, 5, 4, 5, 4


def render_text(plan: Plan) -> str:
    """Format a plan: `+` starts, `-` is evicted, `=` is spared, `!` refused or a finding, `~` changes over the load."""
    decider = [f"decided by {decider_of(plan)}"] if plan.decided_by else []
    lines = [_head(plan.subject), *decider, *_first(plan.notes, _NOTES, "notes")]
    lines += ["changes:", *_indented(_first(plan.changes or ["no change that affects decisions"], _CHANGES, "changes"))]
    lines += at_once_lines(plan)
    lines += load_lines(plan.over_load)
    if plan.rules is not None:
        lines += [f"the rules: {plan.rules.title}", *_indented(_first(plan.rules.flips, _FLIPS, "flips"))]
    available = max(MAX_LINES - len(lines) - 1 - len(plan.failed or [""]), 1)
    lines += ["assumptions:", *_indented(_first(plan.assumptions, available, "assumptions"))]
    lines += [f"worse than permitted: {condition}" for condition in plan.failed]
    return "\n".join(_short(plan.named(line)) for line in lines[:MAX_LINES]) + "\n"


def _short(line: str) -> str:
    """Cut the protections of other candidates from a long line; the terminal wraps what remains."""
    short = line if len(line) <= _WIDTH else line.partition("; others: ")[0]
    return short if len(short) <= _LONGEST else f"{short[: _LONGEST - 1]}…"


def _head(subject: PlanInputs) -> str:
    """Return the subject of the plan and its state; a long path is cut to its file name, so that the numbers fit."""
    before = f"plan of {subject.proposed} against {subject.now}, on "
    after = (
        f" taken {render_age(subject.age_seconds)} ago "
        f"(sha256 {subject.sha256[:12]}{', redacted' if subject.redacted else ''}): "
        f"{count(subject.nodes, 'node')}, {count(subject.queues, 'queue')}, {count(subject.pods, 'pod')}"
        + (f", {count(subject.workloads, 'Workload')}" if subject.workloads else "")
    )
    fits = len(before + subject.state + after) <= _WIDTH
    return before + (subject.state if fits else subject.state.rstrip("/").rpartition("/")[2]) + after


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _first(lines: list[str], limit: int, what: str) -> list[str]:
    hidden = len(lines) - limit + 1
    return lines if hidden < 2 else [*lines[: limit - 1], f"and {hidden} more {what} (-o json)"]


def decider_of(plan: Plan) -> str:
    """Return whose own program decided, in how many runs, and whether our model decides the same."""
    runs = f" in {len(plan.runs)} runs" if len(plan.runs) > 1 else ""
    if not plan.decided_by:
        return "schedspec's scheduler, in virtual time"
    if plan.model is None:
        return f"{plan.decided_by}, the scheduler's own program{runs}"
    mine, theirs = ({one.pod for one in world.evictions} for world in (plan.model, plan.at_once))
    starts, others = ({(one.job, one.pods) for one in world.starts} for world in (plan.model, plan.at_once))
    if (mine, starts) == (theirs, others):
        agrees = "our model decides the same"
    else:
        agrees = f"our model evicts {count(len(mine), 'pod')}, {len(mine & theirs)} of them the same"
        agrees += f", and starts {count(len(starts), 'job')}, {len(starts & others)} the same"
    return f"{plan.decided_by}, the scheduler's own program{runs}; {agrees}"


def headline_of(plan: Plan) -> str:
    """Return the immediate effects in one line; of several runs, the range of evicted pods."""
    if len(plan.runs) < 2:
        return headline(plan.at_once)
    numbers = sorted(pods_of(run.evictions) for run in plan.runs)
    spread = f"{numbers[0]}" if numbers[0] == numbers[-1] else f"{numbers[0]} to {numbers[-1]}"
    return f"{spread} pods are evicted in {len(plan.runs)} runs; in any of them: {headline(plan.at_once)}"


def headline(decisions: AtOnce) -> str:
    pods = pods_of(decisions.evictions)
    parts = [
        f"{count(pods, 'pod')} {'is' if pods == 1 else 'are'} evicted",
        f"{count(len(decisions.starts), 'job')} more start",
        f"{len(decisions.refused)} refused",
    ]
    if decisions.spared:
        parts.append(f"{count(len(decisions.spared), 'pod')} spared")
    unchanged = (
        pods_of(decisions.proposed.evictions) - pods,
        len(decisions.proposed.starts) - len(decisions.starts),
    )
    if any(unchanged):
        parts.append(f"(without the change too: {unchanged[0]} evicted, {unchanged[1]} start)")
    return ", ".join(parts)


def queue_line(row: QueueAtOnce, resource: str) -> str:
    """Return what the change does to a queue: `ads 74 → 47 gpus of 80 deserved; 8 jobs lose pods`."""
    unit = f"{resource.rpartition('/')[2]}s"
    share = "" if row.deserved is None else f" of {row.deserved:g} deserved"
    jobs = [f"{count(row.lose, 'job')} lose{'s' if row.lose == 1 else ''} pods"] if row.lose else []
    jobs += [f"{count(row.start, 'job')} start{'s' if row.start == 1 else ''}"] if row.start else []
    return "; ".join((f"{row.queue} {row.now:g} → {row.proposed:g} {unit}{share}", *jobs))


def grouped(rows: Iterable[tuple[str, ...]], what: str) -> list[tuple[str, ...]]:
    """Return one row for each group of rows: the first subject and how many more, and the common cells."""
    return [
        (names[0] + (f" and {count(len(names) - 1, f'more {what}')}" if len(names) > 1 else ""), *cells)
        for names, cells in Plan.groups(rows)
    ]


def _sentences(sign: str, rows: Iterable[tuple[str, str]], what: str) -> list[str]:
    return [f"{sign} {subject} {sentence}" for subject, sentence in grouped(rows, what)]


def _eviction(one: PlannedEviction, runs: str) -> str:
    """Return an eviction after its pod: of a scheduler's own program its own words, of our model the deciding tier."""
    unit = f" of {count(one.pods, 'pod')}" if one.pods > 1 else ""
    preemptor = f" for {one.preemptor} ({one.preemptor_queue})" if one.preemptor else ""
    why = "; ".join(filter(None, (one.action, one.rule))) or "the scheduler publishes no reason"
    return f"({one.queue}){unit}{preemptor}{runs}: {why}"


def at_once_lines(plan: Plan) -> list[str]:
    decisions = plan.at_once
    evicted = _sentences("-", ((one.pod, _eviction(one, plan.in_runs(one.runs))) for one in decisions.evictions), "pod")
    started = _sentences(
        "+",
        ((one.job, f"({one.queue}): {count(one.pods, 'pod')}{plan.in_runs(one.runs)}") for one in decisions.starts),
        "job",
    )
    refused = _sentences("!", (
        (one.job, f"({one.queue}) {one.before}{' and' if one.was == SUBMITTED else ', now'} waits: {one.why}")
        for one in decisions.refused
    ), "job")  # fmt: skip
    spared = _sentences("=", (
        (one.pod, f"({one.queue}) keeps running: without the change it is evicted") for one in decisions.spared
    ), "pod")  # fmt: skip
    limit = max(_AT_ONCE // max(sum(bool(part) for part in (evicted, started, refused, spared)), 1), 3)
    lines = [f"at once: {headline_of(plan)}"]
    lines += _indented(_first([queue_line(row, plan.subject.resource) for row in decisions.queues], _QUEUES, "queues"))
    for part, what in ((evicted, "evictions"), (refused, "refusals"), (started, "starts"), (spared, "spared pods")):
        lines += _indented(_first(part, limit, what))
    for side, world in (("now", decisions.now), ("proposed", decisions.proposed)):
        if world.problem:
            lines.append(f"  {side} does not settle: {world.problem}")
    return lines


def load_lines(loads: list[OverLoad]) -> list[str]:
    """Return the lines of the effects over the load; with several assumptions about run times, numbers are ranges."""
    if not loads:
        return []
    lines = [f"over the load ({loads[0].load}), run times {' … '.join(load.run_times for load in loads)}:"]
    lines += [f"  {load.problem}" for load in loads if load.problem]
    lines.append(
        "  "
        + ", ".join(
            f"{label} {_spans_of(loads, key, unit)}"
            for label, key, unit in (
                ("wait p95", "wait_p95", "s"),
                ("evicted pods", "evicted_pods", ""),
                ("lost card-hours", "lost_card_hours", ""),
                ("never start", "never_started", ""),
            )
        )
    )
    rows = []
    for queue, sides in _queues_of(loads):
        for label, key in (("wait p95", "wait_p95"), ("time below its guarantee", "below_guarantee_seconds")):
            now, new = [side.now.get(key) for side in sides], [side.proposed.get(key) for side in sides]
            if now != new:
                gap = max(abs((b or 0.0) - (a or 0.0)) for a, b in zip(now, new, strict=True))
                rows.append((gap, f"~ {queue}: {label} {spans(now, new, 's')}"))
    rows.sort(key=lambda row: -row[0])
    lines += _indented(_first([text for _, text in rows], _WAITS, "queues"))
    worst = loads[-1]
    lines += _indented(
        _first(
            [f"! {finding.rule}: {finding.subject} ({finding.queue}): {finding.text}" for finding in worst.findings],
            3,
            "findings",
        )
    )
    if worst.starved:
        lines.append(f"  ! {count(len(worst.starved), 'job')} never start with the change, such as {worst.starved[0]}")
    elif worst.changed:
        one = worst.changed[0]
        lines.append(f"  most changed: {one.job} waits {shown(one.now, 's')} → {shown(one.proposed, 's')}. {one.why}")
    return lines


def _queues_of(loads: list[OverLoad]) -> Iterator[tuple[str, list[QueueChange]]]:
    """Yield each queue with its changes, one for each assumption about run times."""
    for number, queue in enumerate(loads[-1].queues):
        yield queue.queue, [load.queues[number] for load in loads if len(load.queues) > number]


def _spans_of(sides: Sequence[OverLoad | QueueChange], key: str, unit: str) -> str:
    return spans([side.now.get(key) for side in sides], [side.proposed.get(key) for side in sides], unit)


def spans(now: list[float | None], proposed: list[float | None], unit: str) -> str:
    """Format a metric of both worlds: `12 min → 53 min (+41 min)`, or ranges of them."""
    before, after = _range(now, unit), _range(proposed, unit)
    if before == after:
        return before
    gaps = [b - a for a, b in zip(now, proposed, strict=True) if a is not None and b is not None]
    return f"{before} → {after}" + (f" ({_range(gaps, unit, sign='+')})" if gaps else "")


def _range(values: Iterable[float | None], unit: str, sign: str = "") -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    low, high = shown(min(known), unit, sign), shown(max(known), unit, sign)
    return low if low == high else f"{low} … {high}"


def shown(value: float | None, unit: str, sign: str = "") -> str:
    if value is None:
        return "for ever"
    if unit == "s":
        amount, name = scaled(value)
        return f"{amount:{sign}.0f} s" if name == "s" else f"{amount:{sign}.1f} {name}"
    return f"{value:{sign}g}" if value == int(value) else f"{value:{sign}.1f}"


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
    for queue, sides in _queues_of(loads):
        metrics = (("wait_p95", "s"), ("evicted_pods", ""), ("lost_card_hours", ""))
        rows.append((queue, *(_spans_of(sides, key, unit) for key, unit in metrics)))
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
    return ["", f"The rules: {_safe(plan.rules.title)}", *(f"* {_safe(flip)}" for flip in plan.rules.flips[:_MAX])]
