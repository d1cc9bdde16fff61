"""`python -m tests.mutation`: mutate actions and plugins, one change at a time, and check whether a test fails.

cosmic-ray creates the mutants. The checkout is never changed; each worker mutates its own copy.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from cosmic_ray.commands import init
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import MutationSpec, WorkResult

from tests.mutation.annotations import Annotations

ROOT = Path(__file__).parents[2]
MUTATED = ("scheduler/actions", "scheduler/plugins")
TABLES = ("tests/scheduler/decide/test_tables.py", "tests/scheduler/placement/test_pod_fields.py")
TESTS = ("tests/scheduler/conformance", *TABLES, "tests/scheduler/plugins/queue", "tests/scheduler/policy")
"""Conformance and table tests; random tests are not part of this measurement."""
GOAL = 0.8
_TIME_FACTOR = 10.0
"""A mutant that takes this many times as long as the unchanged code counts as killed: it does not terminate."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--sample", type=int, default=200, help="number of mutants (default: 200)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random sample (default: 1)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="", help="only modules whose path contains this")
    parser.add_argument("--python", default=str(ROOT / ".venv/bin/python"), help="the Python that runs the tests")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "mutation")
    given = parser.parse_args()
    os.environ.setdefault("CONFORMANCE_DIR", str(ROOT.parent / "shared" / "conformance"))
    os.chdir(ROOT)
    everything = mutants(given.only)
    chosen = random.Random(given.seed).sample(everything, min(given.sample, len(everything)))
    command = f"{given.python} -m pytest -x -q -p no:cacheprovider {' '.join(TESTS)}"
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="schedspec-mutation-") as folder:
        copies = [copy(Path(folder) / str(number)) for number in range(given.workers)]
        subprocess.run(command.split(), cwd=copies[0], check=True)  # the unchanged code must pass
        limit = _TIME_FACTOR * (time.monotonic() - began)
        batches = [chosen[number :: given.workers] for number in range(given.workers)]
        with ProcessPoolExecutor(given.workers) as pool:
            judged = pool.map(judge, copies, batches, [command] * given.workers, [limit] * given.workers)
            results = [found for batch in judged for found in batch]
    return report(results, len(everything), time.monotonic() - began, given.out)


def mutants(only: str) -> list[MutationSpec]:
    """Return all possible mutants in the order of the files, except those in annotations, which are not evaluated."""
    files = sorted(file for folder in MUTATED for file in Path(folder).glob("*.py") if only in str(file))
    with use_db(":memory:", WorkDB.Mode.create) as work:
        init(files, work, {})
        found = [mutation for item in work.work_items for mutation in item.mutations]
    idle = {file: Annotations.of(file) for file in files}
    return sorted(
        (it for it in found if not idle[it.module_path].has(it.start_pos)),
        key=lambda it: (str(it.module_path), it.start_pos, it.operator_name, it.occurrence),
    )


def copy(folder: Path) -> Path:
    """Copy the files that git tracks, in their current state."""
    known = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, check=True).stdout
    for name in filter(None, known.split("\0")):
        if Path(name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(name, folder / name)
    return folder


def judge(
    place: Path, batch: Sequence[MutationSpec], command: str, limit: float
) -> list[tuple[MutationSpec, WorkResult]]:
    """Test mutants in a process of its own, because the paths of mutants are relative to the copy."""
    os.chdir(place)
    return [(mutant, mutate_and_test([mutant], command, limit)) for mutant in batch]


def report(results: Sequence[tuple[MutationSpec, WorkResult]], of: int, seconds: float, out: Path) -> int:
    """Print a table by module and write the survivors as diffs. Return 1 if too many survived."""
    total = Counter(str(mutant.module_path) for mutant, _ in results)
    killed = Counter(str(mutant.module_path) for mutant, result in results if result.is_killed)
    for module in sorted(total):
        sys.stdout.write(f"{module:44} {killed[module]:4} of {total[module]:4}\n")
    out.mkdir(parents=True, exist_ok=True)
    survivors = [f"{result.diff}\n" for _, result in results if not result.is_killed]
    (out / "survivors.diff").write_text("\n".join(survivors), "utf-8")
    share = killed.total() / max(1, len(results))
    verdict = "ok" if share >= GOAL else "MISSED"
    sys.stdout.write(
        f"killed {killed.total()} of {len(results)} ({share:.0%}, goal {GOAL:.0%}: {verdict}), drawn from {of}, "
        f"in {seconds / 60:.0f} min; survivors: {out / 'survivors.diff'}\n"
    )
    return 0 if share >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
