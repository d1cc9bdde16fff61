"""Write a reduced case as a feature file, and its policy beside it unless a sentence can name the policy."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ... import distribution
from ...api.capabilities import Capability
from ...monitors import MONITORS
from ...report.record import UID
from ...schedulers import find
from ..recorder.judge import PING_PONG
from .case import Case
from .confirm import OWN
from .feature import Text, thens_of, write_feature
from .play import NOT_PLAYED, play
from .reduce import Reduced
from .signature import rule_of

_NAME = re.compile(r"([a-z0-9.-]+/)?[a-z0-9.-]+")
MAX_LINES = 32
"""Maximum lines of a short feature; a longer one states its length in a comment."""
_SIMPLEST = ("capacity", "proportion", "gangs", "preempt", "hierarchy", "default")
"""Policies in the order in which they are tried; the simplest first."""


def known_policies() -> dict[str, str]:
    """Return the policies that a sentence can name, the simplest first."""
    files = sorted((distribution.folder("templates") / "policies").glob("*.yaml"))
    order = {name: number for number, name in enumerate(_SIMPLEST)}
    ordered = sorted(files, key=lambda path: (order.get(path.stem, len(order)), path.stem))
    return {path.stem: path.read_text("utf-8") for path in ordered if path.stem != "capacity-and-proportion"}


def write(
    out: Path,
    found: Reduced,
    comments: Sequence[str],
    thens: Sequence[str] = (),
    *,
    scheduler: str = OWN,
    is_played: bool = True,
) -> int:
    """Write the feature of a reduced case; returns its number of lines.

    `thens`: the expected outcome; by default the sentences of the incident. `scheduler`: the scheduler that the feature
    is for. `is_played`: whether a simulation with our scheduler shows which work runs or waits.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    policy = given_policy(out, found.case.policy, {found.case.policy: found.policy_name}, scheduler)
    story = play(found.case) if is_played else NOT_PLAYED
    rule = rule_of(found.signature)
    sentences = [*thens] or thens_of(found.case, found.signature, story)
    sentences = sentences or thens_of_monitor(rule, "", found.case)
    title = title_of_monitor(rule) or found.title
    text = write_feature(found.case, story, Text(title, policy, sentences, comments, work=kind_of_work(scheduler)))
    out.write_text(text, "utf-8")
    return len(text.splitlines())


def given_policy(out: Path, policy: str, names: Mapping[str, str], scheduler: str) -> str:
    """Return the sentence that names a policy in a feature; write the policy beside it if it has no name.

    `names`: names of policies by text; an empty name counts as no name. `scheduler`: the scheduler; a scheduler without
    policies preempts by priority.
    """
    if find(scheduler).missing(Capability.POLICY):
        return "a policy by which higher priority preempts lower priority"
    if name := names.get(policy):
        return f'the policy "{name}"'
    beside = out.with_suffix(".policy.yaml")
    beside.write_text(policy, "utf-8")
    return f'the policy of "{beside.name}"'


def kind_of_work(scheduler: str) -> str:
    return "gangs" if find(scheduler).missing(Capability.JOBS) else "jobs"


def title_of_monitor(rule: str) -> str:
    """Return what a monitor demands, as a title; empty if `rule` names no monitor."""
    monitor = MONITORS.get(rule.partition(":")[0])
    if monitor is None:
        return "No two jobs are evicted for each other in turn" if rule == PING_PONG else ""
    first = (inspect.getdoc(inspect.getmodule(monitor)) or "").partition("\n")[0]
    demand = first.removeprefix("Monitor: ").removesuffix(".")
    return demand[:1].upper() + demand[1:]


def thens_of_monitor(rule: str, job: str, case: Case) -> list[str]:
    """Return a sentence that holds unless the rule is broken; if no sentence fits, one that waits for a decision.

    `job`: the job that the monitor names; empty if it is unknown.
    """
    monitor = rule.partition(":")[0]
    if monitor == "repeated-eviction":
        return ["exactly 1 pod is evicted"]
    if job and monitor in ("protection", "needless-eviction", "needless-workload-eviction"):
        return [f'"{job}" keeps running']
    return [f'"{work.name}" runs or is refused' for work in case.jobs[-1:]]


def own_version() -> str:
    """Return the version of schedspec for a comment."""
    return distribution.version() or "(no release)"


def why_it_fails(monitor: str, scheduler: str) -> str:
    """Return the comment that the scheduler does not do what the title of the feature demands."""
    return f"It fails with {scheduler}: the monitor {monitor} finds that the title does not hold"


def names_of_the_state(found: Reduced) -> list[str]:
    """Return comments on what jobs and queues stand for, without names that no object of a cluster can have.

    A namespace that all jobs share is written once, and the UID that Volcano appends to the name of a PodGroup is left
    out: both would fill the line.
    """
    pairs = {new: old for new, old in found.names_in_state.items() if new != old and _NAME.fullmatch(old)}
    jobs = {new: UID.sub("", old) for new, old in pairs.items() if "/" in old}
    queues = {new: old for new, old in pairs.items() if "/" not in old}
    namespaces = {old.partition("/")[0] for old in jobs.values()}
    where = ""
    if len(namespaces) == 1:
        where = f" (namespace {namespaces.pop()})"
        jobs = {new: old.partition("/")[2] for new, old in jobs.items()}
    named = (("Jobs", jobs, where), ("Queues", queues, ""))
    return [f"{what}: {_stand_for(names)}{within}" for what, names, within in named if names]


def _stand_for(names: Mapping[str, str]) -> str:
    first, *others = names.items()
    return ", ".join((f"{first[0]} stands for {first[1]}", *(f"{new} for {old}" for new, old in others)))
