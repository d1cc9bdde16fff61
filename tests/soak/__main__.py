"""Run every feature five times, in a different order each time, and then an hour of churn (`tests.soak.churn`).

The features run on the embedded cluster and, where it can run, on Kind.

python -m tests.soak [--rounds N] [--minutes N] [--seed N] [--cluster embedded|kind]...
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

from schedspec.clusters.kind.kind_gate import SKIP
from tests.soak import churn


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=60.0, help="minutes of churn; 0: no churn")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cluster", action="append", choices=("embedded", "kind"))
    given = parser.parse_args()
    failed = 0
    for cluster in given.cluster or ("embedded", "kind"):
        if (
            cluster == "kind"
            and subprocess.call([sys.executable, "-m", "schedspec.clusters.kind.kind_gate", "auto"]) == SKIP
        ):
            continue
        for number in range(given.rounds):
            seed = given.seed + number
            began = time.monotonic()
            status = run(cluster, seed)
            failed += status != 0
            took = time.monotonic() - began
            verdict = "FAILED" if status else "passed"
            sys.stdout.write(f"soak: {cluster}, seed {seed}: {verdict} in {took:.0f} s\n")
            sys.stdout.flush()
    if given.minutes > 0:
        failed += not churn.soak(given.minutes, given.seed)
    return 1 if failed else 0


def run(cluster: str, seed: int) -> int:
    """Run one round and return pytest's exit status."""
    options = ["-n", "2"] if cluster == "embedded" else ["--kind-config", "kind-config/cards.yaml"]
    command = [sys.executable, "-m", "pytest", "features", "-q", "-p", "tests.soak.shuffled", "--cluster", cluster]
    command += [*options, "--out", f"out/soak/{cluster}-{seed}"]
    return subprocess.call(command, env={**os.environ, "SOAK_SEED": str(seed)})


if __name__ == "__main__":
    sys.exit(main())
