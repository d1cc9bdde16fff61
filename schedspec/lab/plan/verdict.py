"""Find the results that are worse than `--fail-on` permits.

`evictions>0`, `wait-p95>+10%`, `wait-p95>+5m`, `lost-card-hours>1`, `refused>0`, `starvation`, `flips`, `monitor`.
A condition limits by how much a metric of the proposed world may exceed the metric of the present world. A plus sign is
optional. With a range of run times, the worst run counts. Where a scheduler ran several times, a condition about what
happens at once holds if it holds in any run; `evictions>0 in all` needs all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from .answer import Plan, pods_of
from .changes import ChangeError

_CONDITION = re.compile(
    r"(?P<name>[a-z][a-z0-9-]*)(?:>(?P<plus>\+)?(?P<value>\d+(?:\.\d+)?)(?P<unit>%|s|m|h)?)?(?P<of> in (?:any|all))?"
)
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition; `text` is its notation on the command line."""

    text: str
    name: str
    value: float
    is_share: bool
    in_all: bool = False
    """Whether all runs have to be worse than permitted, not any."""


def _of_each(name: str) -> Callable[[Plan], list[tuple[float, float]]]:
    """Return a function that reads a metric of both worlds, over all queues and for each queue."""

    def read(plan: Plan) -> list[tuple[float, float]]:
        found = []
        for load in plan.over_load:
            pairs = [(load.now, load.proposed), *((queue.now, queue.proposed) for queue in load.queues)]
            for now, proposed in pairs:
                found.append((now.get(name) or 0.0, proposed.get(name) or 0.0))
        return found

    return read


def _of_all(name: str) -> Callable[[Plan], list[tuple[float, float]]]:
    return lambda plan: [(load.now.get(name) or 0.0, load.proposed.get(name) or 0.0) for load in plan.over_load]


_METRICS: dict[str, Callable[[Plan], list[tuple[float, float]]]] = {
    "evictions": lambda plan: [(0.0, float(pods_of(run.evictions))) for run in plan.runs],
    "refused": lambda plan: [(0.0, float(len(run.refused))) for run in plan.runs],
    "wait-p50": _of_each("wait_p50"),
    "wait-p95": _of_each("wait_p95"),
    "wait-max": _of_each("wait_max"),
    "evictions-over-load": _of_all("evicted_pods"),
    "lost-card-hours": _of_all("lost_card_hours"),
    "below-guarantee": _of_each("below_guarantee_seconds"),
    "below-deserved": _of_each("below_deserved_seconds"),
    "starvation": lambda plan: [(0.0, float(len(load.starved))) for load in plan.over_load],
    "flips": lambda plan: [
        (0.0, float(len(rules.flips) + bool(rules.problem))) for rules in (plan.rules,) if rules is not None
    ],
    "monitor": lambda plan: [
        (0.0, float(bool(plan.at_once.proposed.problem and not plan.at_once.now.problem))),
        *((0.0, float(len(load.findings))) for load in plan.over_load),
    ],
}
_IN_RUNS = ("evictions", "refused")
_AT_ONCE = ("evictions", "refused", "monitor")
"""Metrics that need neither a load nor features."""


def _units(name: str) -> tuple[str, ...]:
    """Return the units that a limit of this metric may have. What begins with the change has no share."""
    if name.startswith(("wait", "below")):
        return "%", "s", "m", "h"
    return ("%",) if name in ("evictions-over-load", "lost-card-hours") else ()


def parse_conditions(texts: list[str], *, load: bool = True, features: bool = True) -> list[Condition]:
    """Read the conditions. `load` and `features` tell whether the plan has a load and features.

    Raises:
        ChangeError: a text is not a condition, or the plan cannot judge the condition.
    """
    found = []
    for text in (part.strip() for given in texts for part in given.split(",")):
        match = _CONDITION.fullmatch(text)
        if match is None or match["name"] not in _METRICS:
            raise ChangeError("--fail-on", f"{text!r} is not a condition", f"write {', '.join(_METRICS)}, with >NUMBER")
        needs, has = ("--features", features) if match["name"] == "flips" else ("--load", load)
        if match["name"] not in _AT_ONCE and not has:
            raise ChangeError("--fail-on", f"{text!r} cannot be judged without {needs}", f"add {needs}")
        if match["of"] and match["name"] not in _IN_RUNS:
            raise ChangeError("--fail-on", f"{text!r}: only {' and '.join(_IN_RUNS)} differ by run", "leave it out")
        unit = match["unit"] or ""
        if unit not in ("", *_units(match["name"])):
            units = ", ".join(_units(match["name"])) or "none"
            raise ChangeError("--fail-on", f"{text!r} has a unit that means nothing here", f"units: {units}")
        value = float(match["value"] or 0.0)
        permitted = value * (0.01 if unit == "%" else _SECONDS[unit])
        found.append(Condition(text, match["name"], permitted, unit == "%", match["of"] == " in all"))
    return found


def judge(plan: Plan, conditions: list[Condition]) -> list[str]:
    """Return the results that are worse than permitted, one in each line."""
    failed = []
    for condition in conditions:
        pairs = _METRICS[condition.name](plan)
        worst = [
            (now, new)
            for now, new in pairs
            if new - now > (condition.value * now if condition.is_share else condition.value)
        ]
        if worst and (len(worst) == len(pairs) or not condition.in_all):
            now, new = max(worst, key=lambda pair: pair[1] - pair[0])
            shown = f"{new:g}" if not now else f"{now:g} → {new:g}"
            failed.append(f"{condition.text}: {shown}")
    return failed
