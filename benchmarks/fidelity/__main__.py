"""Foretell changes by the twin and by the model, make them in a production, and compare.

    python -m benchmarks.fidelity [--scheduler kueue] [--states 12] [--first-seed 1] [--out FOLDER]

For each state: the production settles, is dumped and planned; the change is made, and what the scheduler then evicts
and starts is compared. The change is undone, some jobs end, others arrive, and the next state follows. Each state is a
line of `fidelity.jsonl`, which an interrupted run continues; its dump is `SCHEDULER-SEED.jsonl.gz`, so that `plan` can
repeat what was foretold.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.fidelity import judge
from benchmarks.fidelity.production import ProductionCluster, running
from schedspec.lab.plan import Plan, Request, Side, make_plan
from schedspec.lab.twin import Choice
from schedspec.virtual.state import State
from tests.support.teams import CARDS_OF_NODE, MOST_PODS, QUEUES, REQUESTED, TEAMS, Change, Job, Team

OUT = Path(__file__).parents[1] / "out" / "fidelity"
_ENDS = 0.25
"""Part of the jobs that end between two states."""


def measure(team: Team, seeds: list[int], out: Path) -> Iterator[dict[str, Any]]:
    """Yield one state for each seed, all of one production."""
    jobs: list[Job] = []
    with tempfile.TemporaryDirectory() as folder, running(team, Path(folder), _say) as production:
        for seed in seeds:
            rng = random.Random(f"{team.scheduler} {seed}")
            kind = team.kinds[seed % len(team.kinds)]
            jobs = _worked(production, team, rng, jobs, seed)
            began = time.monotonic()
            row = {"scheduler": team.scheduler, "seed": seed, "change": kind}
            row["unsettled"] = production.settle().problem
            file = out / f"{team.scheduler}-{seed}.jsonl.gz"
            state = production.dump(file)
            if not row["unsettled"]:  # else nobody could tell the change's effects from the others
                row |= _state(production, state, team.change(rng, kind), file)
                production.apply(team.undone())
            yield row | {"seconds": round(time.monotonic() - began)}


def _worked(production: ProductionCluster, team: Team, rng: random.Random, jobs: list[Job], seed: int) -> list[Job]:
    """End a part of the jobs, and submit new ones until enough is requested; return the jobs that are there."""
    ended = rng.sample(range(len(jobs)), round(len(jobs) * _ENDS))
    for number in ended:
        production.end(jobs[number].body)
    most = rng.choice(QUEUES)
    found = [job for number, job in enumerate(jobs) if number not in ended]
    while sum(job.cards for job in found) < REQUESTED * team.nodes * CARDS_OF_NODE:
        job = team.job(rng, f"s{seed}-{len(found):02}", most)
        if sum(one.pods for one in found) + job.pods > MOST_PODS:
            break
        production.put(job.body)
        found.append(job)
    return found


def _state(production: ProductionCluster, state: State, change: Change, file: Path) -> dict[str, Any]:
    """Foretell a change of the production and make it."""
    twin = _planned(file, change, Choice(production.scheduler, progress=_say))
    model = None if production.scheduler == "kueue" else _planned(file, change, Choice(by_model=True))
    world = production.settle(state, lambda: production.apply(change))
    marked = [eviction for eviction in world.evictions if eviction.why]  # controllers delete pods as well
    happened = judge.shown(marked, world.starts, world.waiting, world.problem)
    runs, model_runs = _shown(twin), [] if model is None else _shown(model)
    return {
        "changes": twin.changes,
        "by": twin.decided_by,
        "pods": twin.subject.pods,
        "twin_equal": judge.is_equal(happened, runs),
        "among": judge.are_among(happened, runs),
        "model_equal": judge.is_as_many(happened, model_runs[0]) if model_runs else None,
        "happened": happened,
        "deleted": sorted(eviction.pod for eviction in world.evictions if not eviction.why),
        "twin": runs,
        "restless": len(twin.at_once.now.evictions) + len(twin.at_once.now.starts),
        "model": model_runs,
    }


def _planned(file: Path, change: Change, choice: Choice) -> Plan:
    request = Request(file, None, Side("proposed", change.files), grace=1.0, clock=time.time())
    return make_plan(request, choice.of)


def _shown(plan: Plan) -> list[judge.Shown]:
    return [
        judge.shown(run.evictions, run.starts, run.proposed.waiting, run.now.problem or run.proposed.problem)
        for run in plan.runs
    ]


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S', time.gmtime())} {text}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scheduler", action="append", choices=TEAMS, help="default: all")
    parser.add_argument("--states", type=int, default=40, help="states of each scheduler (%(default)s)")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    lines = given.out / "fidelity.jsonl"
    rows = [json.loads(line) for line in lines.read_text("utf-8").splitlines()] if lines.exists() else []
    for name in given.scheduler or TEAMS:
        done = {row["seed"] for row in rows if row["scheduler"] == name}
        seeds = [seed for seed in range(given.first_seed, given.first_seed + given.states) if seed not in done]
        if not seeds:
            continue
        for row in measure(TEAMS[name](random.Random(f"{name} {seeds[0]}")), seeds, given.out):
            rows.append(row)
            with lines.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            _say(f"{name} {row['seed']}: {row['change']}: {judge.verdict(row)} ({row['seconds']} s)")
    print(judge.table(rows))


if __name__ == "__main__":
    main()
