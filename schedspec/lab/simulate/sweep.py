"""Run a load with several seeds and policies, one process a run; print and draw ranges and paired differences."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

from ...api.errors import HarnessError
from ...observe.view import count
from ...schedulers.pdeathsig import end_with_parent
from .command import main
from .pages import metrics
from .pages.sweep import Sweep, read, write

_INTERRUPTED = 130


class SweepError(HarnessError):
    """The sweep cannot be run, or its results cannot be joined."""


def runs_of(given: SimpleNamespace) -> list[SimpleNamespace]:
    """Return the options of each run: every policy with every seed; seeds count on from --seed. Raises SweepError."""
    if (given.seeds or 1) > 1 and given.synthetic is None:
        raise SweepError("--seeds: only a synthetic load has seeds\n  do next: name one with --synthetic")
    for option in ("against", "record"):
        if getattr(given, option) is not None:
            raise SweepError(
                f"--{option}: is of one run, not of a sweep\n  do next: leave it out, or --seeds and --sweep"
            )
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
            more = {"policy": policy, "seed": seed, "out": folder / f"{name}.jsonl"}
            found.append(SimpleNamespace(**{**vars(given), **more}))
    return found


def run_all(given: SimpleNamespace) -> int:
    """Run all runs, or the one that `--index` names, on all cores; print the ranges, and write the page of all.

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
    _show(
        read(run.out for run in runs if run.out.exists()),
        given.page or (None if given.index is not None else given.out.with_suffix(".html")),
    )
    sys.stdout.write(f"results: {runs[0].out.parent}\n")
    return max(statuses)


def _run(runs: Sequence[SimpleNamespace]) -> list[int]:
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


def _one(given: SimpleNamespace) -> int:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    end_with_parent(signal.SIGINT)  # the run writes its results so far
    with Path(os.devnull).open("w") as null, contextlib.redirect_stdout(null):
        status: int = main(given)
    return status


def join(folder: Path, given: SimpleNamespace) -> int:
    """Print the ranges of all results below a folder, such as those of an Indexed Job. Raises SweepError."""
    found = sorted(folder.rglob("*.jsonl"))
    if not found:
        raise SweepError(f"{folder}: no result of a simulation\n  do next: name the folder that `collect` wrote")
    runs = read(found)
    if given.policy is not None:
        runs = _compared_with(runs, given.policy.name)
    _show(runs, given.page)
    return 0


def _compared_with(runs: Sweep, name: str) -> Sweep:
    """Return the sweep with a policy, named by its file, in the first place. Raises SweepError."""
    first = [policy for policy in runs.runs if Path(policy).name == name]
    if len(first) != 1:
        names = ", ".join(sorted(Path(policy).name for policy in runs.runs))
        raise SweepError(f"--policy {name}: not a policy of these results\n  do next: name one of {names}")
    return replace(runs, runs={first[0]: runs.runs[first[0]], **runs.runs})


def _show(runs: Sweep, page: Path | None) -> None:
    sys.stdout.write(summary(runs))
    if page is not None and runs.runs:
        sys.stdout.write(f"page: {write(runs, page)}\n")


def summary(runs: Sweep) -> str:
    """Format minimum, median and maximum of each metric, by policy, and of the differences from the first policy."""
    lines = []
    for policy, found in runs.runs.items():
        lines += ["", f"{policy}: {count(len(found), 'run')}", _row("metric", ("least", "median", "most"))]
        lines += [_row(values.label, values.text()) for values in runs.ranges(policy)]
    for policy in runs.others:
        differences = runs.differences(policy)
        pairs = max((len(values.by_load) for values in differences), default=0)
        lines += ["", f"{policy} against {runs.first}: {count(pairs, 'pair')} of runs with the same load"]
        lines.append(_row("difference", ("least", "median", "most", "better", "worse")))
        for values in differences:
            marks = (str(values.count("better")), str(values.count("worse")))
            lines.append(_row(values.label, (*values.text(metrics.signed), *marks)))
    if runs.incomplete:
        names = ", ".join(path.name for path in runs.incomplete)
        lines += ["", f"left out, because they are not complete: {names}"]
    return "\n".join([*lines, ""]) + "\n"


def _row(label: str, cells: Iterable[str]) -> str:
    return f"{label:<26}" + "".join(f"{cell:>14}" for cell in cells)
