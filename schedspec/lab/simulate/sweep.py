"""Run a synthetic load with several seeds and policies, one process a run, and summarize the ranges of its metrics."""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import signal
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from ...api.errors import HarnessError
from ...schedulers.pdeathsig import end_with_parent
from . import records
from .command import main

_METRICS = (
    ("wait mean s", ("wait_seconds", "mean")),
    ("wait p95 s", ("wait_seconds", "p95")),
    ("wait max s", ("wait_seconds", "max")),
    ("makespan s", ("makespan_seconds",)),
    ("utilisation", ("utilisation",)),
    ("evicted pods", ("evicted_pods",)),
    ("evicted to requested", ("evicted_to_requested",)),
    ("lost card-hours", ("lost_card_hours",)),
    ("distance from deserved", ("distance_from_deserved",)),
    ("Jain", ("jain",)),
)
_INTERRUPTED = 130


class SweepError(HarnessError):
    """The sweep cannot be run, or its results cannot be joined."""


def runs_of(given: argparse.Namespace) -> list[argparse.Namespace]:
    """Return the options of each run: every policy with every seed; seeds count on from --seed. Raises SweepError."""
    if (given.seeds or 1) > 1 and given.synthetic is None:
        raise SweepError("--seeds: only a synthetic load has seeds\n  do next: name one with --synthetic")
    policies = [*([given.policy] if given.policy else []), *given.sweep] or [None]
    stems = [policy.stem if policy else "default" for policy in policies]
    if len({*stems}) < len(stems):
        raise SweepError("--sweep: two policies have one file name\n  do next: rename one: it names the results")
    first, folder = given.seed if given.seed is not None else 1, given.out.with_suffix("")
    found = []
    for policy, stem in zip(policies, stems, strict=True):
        for number in range(given.seeds or 1):
            seed = first + number if given.synthetic is not None else None
            name = stem if seed is None else f"{stem}-seed-{seed}"
            more = {"policy": policy, "seed": seed, "out": folder / f"{name}.jsonl", "against": None}
            found.append(argparse.Namespace(**{**vars(given), **more}))
    return found


def run_all(given: argparse.Namespace) -> int:
    """Run all runs, or the one that `--index` names, on all cores; print the ranges.

    Returns:
        The worst exit status of the runs.

    Raises:
        SweepError: The options contradict each other.
    """
    runs = runs_of(given)
    if given.index is not None:
        if not 0 <= given.index < len(runs):
            raise SweepError(f"--index {given.index}: the sweep has the runs 0 to {len(runs) - 1}\n  do next: name one")
        runs = [runs[given.index]]
    runs[0].out.parent.mkdir(parents=True, exist_ok=True)
    statuses = _run(runs)
    sys.stdout.write(summary(run.out for run in runs if run.out.exists()))
    sys.stdout.write(f"results: {runs[0].out.parent}\n")
    return max(statuses)


def _run(runs: Sequence[argparse.Namespace]) -> list[int]:
    workers = min(len(runs), os.cpu_count() or 1)
    context = multiprocessing.get_context("spawn")
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # each run ends itself and writes its results so far
    try:
        with ProcessPoolExecutor(workers, mp_context=context, max_tasks_per_child=1) as pool:
            waiting = {pool.submit(_one, run): run for run in runs}
            statuses = []
            for number, done in enumerate(as_completed(waiting), 1):
                statuses.append(done.result())
                ends = {0: "done", _INTERRUPTED: "interrupted"}.get(statuses[-1], "failed")
                sys.stderr.write(f"{number} of {len(runs)} runs: {waiting[done].out.name} {ends}\n")
            return statuses
    finally:
        signal.signal(signal.SIGINT, before)


def _one(given: argparse.Namespace) -> int:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    end_with_parent(signal.SIGINT)  # the run writes its results so far
    with Path(os.devnull).open("w") as null, contextlib.redirect_stdout(null):
        status: int = main(given)
    return status


def join(folder: Path) -> str:
    """Return the ranges of all results below a folder, such as those of an Indexed Job. Raises SweepError."""
    found = sorted(folder.rglob("*.jsonl"))
    if not found:
        raise SweepError(f"{folder}: no result of a simulation\n  do next: name the folder that `collect` wrote")
    return summary(found)


def summary(results: Iterable[Path]) -> str:
    """Format minimum, median and maximum of each metric, by policy. Raises the errors of the result files."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for path in results:
        policy = ""
        for record in records.read_result(path):
            if isinstance(record, records.Run):
                policy = record.policy
            elif isinstance(record, records.End):
                found.setdefault(policy, []).append(record.metrics)
    lines = []
    for policy, all_metrics in sorted(found.items()):
        lines += ["", f"{policy}: {len(all_metrics)} runs", f"{'metric':<26}{'least':>14}{'median':>14}{'most':>14}"]
        for name, keys in _METRICS:
            values = [value for metrics in all_metrics if (value := _at(metrics, keys)) is not None]
            if values:
                parts = (min(values), statistics.median(values), max(values))
                lines.append(f"{name:<26}" + "".join(f"{part:>14.6g}" for part in parts))
    return "\n".join([*lines, ""]) + "\n"


def _at(metrics: Mapping[str, Any], path: Sequence[str]) -> float | None:
    found: Any = metrics
    for word in path:
        found = found.get(word) if isinstance(found, Mapping) else None
    return found if isinstance(found, (int, float)) else None
