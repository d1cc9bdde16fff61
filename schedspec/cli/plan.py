"""`schedspec plan`: show what a change of policies, queues or nodes does to a cluster, before it is merged."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

import click

from ..lab.plan import (
    Plan,
    Request,
    Side,
    foreign,
    judge,
    make_plan,
    page,
    parse_conditions,
    queue_line,
    render_markdown,
    render_text,
    rules,
    sources,
)
from ..lab.simulate.command import LONGEST
from ..lab.twin import Choice, reads_policies
from ..scheduler.inputs import write_line
from ..schedulers import find
from ..virtual.state.over_time import time_in
from .answers import explains_errors, print_json, refuse_lost_files, refuse_lost_files_beside, refuses_bad_input

_UNITS = {"d": 86400.0, "h": 3600.0}
"""Units of `--max-age`, in seconds."""


def _seconds(context: click.Context, option: click.Parameter, value: float | None) -> float | None:
    """Return a number of seconds. Raises click.BadParameter, which exits with 2."""
    del context
    least = 0.0 if option.name != "until" else math.ulp(0.0)
    if value is not None and not least <= value <= LONGEST and (option.name != "until" or value != math.inf):
        raise click.BadParameter(f"{value:g} is not a number of seconds up to {LONGEST:.0f}; write, for instance, 30")
    return value


@click.command("plan")
@click.option(
    "--state",
    required=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="A dump (`schedspec dump`), a SIGUSR2 dump, a recording, or files of kubectl get -o json.",
)
@click.option("--at", metavar="TIME", help="Of the recording of a cluster: the state at 02:13, in UTC, or ISO 8601.")
@click.option("--now", metavar="OLD", help="The current folder, file or git revision; default: the cluster itself.")
@click.option("--proposed", metavar="NEW", help="Folder, file or git revision; or OLD..NEW.")
@click.option(
    "--submit",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file with work: does it run at once, what does it wait for, whom does it evict?",
)
@click.option(
    "--policy",
    "policy_path",
    default="",
    metavar="PATH",
    help="The policy file in NEW, if several change; or the file of a state without one.",
)
@click.option(
    "--load",
    default="none",
    show_default=True,
    metavar="TRACE|RECORDING|drain|none",
    help="What arrives after the state.",
)
@click.option("--map", "mapping", default="", metavar="FIELD=COLUMN,…", help="Columns of the trace, as in simulate.")
@click.option("--preset", default="", metavar="NAME", help="Columns of a public trace: philly or openb.")
@click.option(
    "--run-times",
    default="age",
    show_default=True,
    metavar="age|range|TIME",
    help="Remaining time of running jobs: their age; a third, once and three times their age; or a fixed time.",
)
@click.option(
    "--resource", default="", metavar="NAME", help="Resource in which amounts are counted; default: the nodes' cards."
)
@click.option(
    "--start-delay",
    default=1.0,
    show_default=True,
    callback=_seconds,
    metavar="SECONDS",
    help="From a pod's bind to its start.",
)
@click.option(
    "--grace",
    default=30.0,
    show_default=True,
    callback=_seconds,
    metavar="SECONDS",
    help="From a pod's eviction to its end.",
)
@click.option(
    "--until", default=math.inf, callback=_seconds, metavar="SECONDS", help="Cut the load after this virtual time."
)
@click.option(
    "--features",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    help="The team's own features, to see which verdicts change. Repeat for several.",
)
@click.option(
    "--fail-on",
    multiple=True,
    metavar="CONDITION",
    help="Exit with 1 if this holds: evictions>0, wait-p95>+10%, starvation …. Repeat for several.",
)
@click.option(
    "--scheduler",
    default="",
    metavar="NAME[@VERSION]",
    help="Ask this scheduler's own program: kueue, volcano, kube-scheduler, schedspec; NAME@OLD..NEW compares two "
    "versions. Default: that of the state, if its program is on this machine; else our model of it.",
)
@click.option("--model", "by_model", is_flag=True, help="Ask our model: in seconds, without a cluster.")
@click.option(
    "--scheduler-binaries",
    "programs",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder with the scheduler's programs.",
)
@click.option(
    "--runs",
    type=click.IntRange(1, 100),
    help="How often the program decides; default: 1, for Volcano 3.",
)
@click.option(
    "--settle",
    type=click.FloatRange(1.0),
    callback=_seconds,
    help="Seconds after which a world that has not settled is cut; default 120.",
)
@click.option("--max-age", default="30d", show_default=True, metavar="DAYS", help="Refuse an older state.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out/plan"),
    show_default=True,
    help="Folder for the results of both worlds, plan.json, plan.md and the page plan.html.",
)
@click.option("-o", "--output", type=click.Choice(["text", "json", "markdown"]), default="text", help="Format.")
@explains_errors
@refuses_bad_input
def plan_command(**given: Any) -> int:
    """Compare a cluster's state without and with a change: effects at once, over a load, and on the team's rules.

    The exit status is 0 if nothing is worse than --fail-on permits, 1 if something is, 2 on bad input.

    \b
    Examples:
      schedspec plan --state state.jsonl.gz --proposed main..HEAD --fail-on 'evictions>0'
      schedspec plan --state state.jsonl.gz --now old/ --proposed new/ --load recording --run-times range
      schedspec plan --state list.json --proposed policies/team.yaml -o markdown >> "$GITHUB_STEP_SUMMARY"
    """
    inputs = [(f"--{name}", given[name]) for name in ("state", "now", "proposed", "load")]
    refuse_lost_files([("--out", given["out"])], [*inputs, *(("--features", file) for file in given["features"])])
    refuse_lost_files_beside(
        "--out", given["out"] / "plan.json", [given["out"] / "plan.md", given["out"] / "plan.html"]
    )
    plan = _planned(given)
    _write(plan, given["out"])
    if given["output"] == "json":
        print_json(plan)
    else:
        click.echo((render_markdown if given["output"] == "markdown" else render_text)(plan), nl=False)
    return 1 if plan.failed else 0


def _planned(given: dict[str, Any]) -> Plan:
    """Make the plan, run the features and judge the plan by the conditions of --fail-on."""
    features = [*given["features"]]
    conditions = parse_conditions([*given["fail_on"]], load=given["load"] != "none", features=bool(features))
    choice = _choice(given)
    plan = make_plan(_request(given, choice), choice.of)
    if not plan.decided_by:
        differences = foreign.foreign_notes(plan.subject.schedulers, plan.policies)
        plan.notes = [*differences[:1], *plan.notes, *differences[1:]]  # the first says who decides
    if features:
        reads = not plan.asked[0] or reads_policies(find(plan.asked[0]))
        for name in dict.fromkeys(filter(None, plan.asked)):
            choice.progress(f"{name} runs the features on an embedded cluster")
        plan.rules = rules.run_rules(features, plan.policies if reads else ("", ""), plan.asked, choice.programs)
    plan.conditions = [condition.text for condition in conditions]
    plan.failed = judge(plan, conditions)
    return plan


def _choice(given: dict[str, Any]) -> Choice:
    return Choice(
        given["scheduler"],
        given["by_model"],
        given["programs"],
        given["runs"] or 0,
        given["settle"] or 0.0,
        lambda line: click.echo(line, err=True),
    )


def _request(given: dict[str, Any], choice: Choice) -> Request:
    now, proposed = given["now"], given["proposed"]
    if proposed is None and not choice.is_upgrade and given["submit"] is None:
        raise sources.SourceError(
            "--proposed is missing\n  do next: name the proposed folder, file or revision, or --submit a file with work"
        )
    load, has_trace = given["load"], given["load"] not in ("none", "drain") and not Path(given["load"]).is_dir()
    for option, is_set, is_read, needs in (
        ("--map", given["mapping"], has_trace, "--load TRACE"),
        ("--preset", given["preset"], has_trace, "--load TRACE"),
        ("--run-times", given["run_times"] != "age", load != "none", "--load"),
        ("--until", given["until"] != math.inf, load != "none", "--load"),
    ):
        if is_set and not is_read:
            raise sources.SourceError(
                f"{option}: nothing reads it without {needs}\n  do next: add {needs}, or leave {option} out"
            )
    if proposed is None and now is not None:
        raise sources.SourceError(
            "--now: nothing reads it without --proposed\n  do next: add --proposed, or leave --now out"
        )
    if proposed is not None and now is not None and Path(now).resolve() == Path(proposed).resolve():
        raise sources.SourceError(
            f"--now and --proposed are both {now}, which has no change\n  do next: name two versions"
        )
    if proposed is None:
        return _made_of(given, None, Side(choice.scheduler.partition("..")[2] or "the submitted work", {}))
    if sources.is_range(proposed):
        if now is not None:
            raise sources.SourceError(
                "--now and a range exclude each other\n  do next: write --proposed OLD..NEW alone"
            )
        base, _, proposed = proposed.partition("..")
        proposed = proposed.lstrip(".") or "HEAD"
        now = sources.merge_base(base, proposed)
    before, after = None if now is None else sources.files_of(now), sources.files_of(proposed)
    if now is not None and Path(now).is_file() and Path(proposed).is_file():  # two versions of one file
        before = {Path(proposed).name: next(iter((before or {}).values()))}
    return _made_of(
        given, None if before is None else Side(sources.short(now), before), Side(sources.short(proposed), after)
    )


def _made_of(given: dict[str, Any], now: Side | None, proposed: Side) -> Request:
    return Request(
        given["state"],
        now,
        proposed,
        given["policy_path"],
        given["load"],
        given["preset"],
        given["mapping"],
        given["run_times"],
        given["resource"],
        given["start_delay"],
        given["grace"],
        given["until"],
        _days(given["max_age"]),
        given["out"],
        time.time(),
        given["submit"],
        None if given["at"] is None else time_in(given["state"], given["at"]),
    )


def _days(text: str) -> float:
    number, length = (text[:-1], _UNITS[text[-1]]) if text[-1:] in _UNITS else (text, _UNITS["d"])
    try:
        days = float(number) * length
    except ValueError:
        days = math.nan
    if not days >= 0:
        raise sources.SourceError(f"--max-age {text}: not a number of days\n  do next: write 30d or 12h")
    return days


def _write(plan: Plan, out: Path) -> None:
    """Write the plan and its page beside the results. Raises SourceError."""
    suffix = "-expected" if len(plan.over_load) > 1 else ""
    results = {side: out / f"{side}{suffix}.jsonl" for side in ("now", "proposed") if plan.over_load}
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / "plan.json").write_bytes(write_line(plan))
        (out / "plan.md").write_text(render_markdown(plan), "utf-8")
        queues = [queue_line(row, plan.subject.resource) for row in plan.at_once.queues]
        page.write(plan, results, queues, out / "plan.html")
    except OSError as error:
        raise sources.SourceError(
            f"--out {out}: cannot be written: {error.strerror}\n  do next: name another folder"
        ) from error
