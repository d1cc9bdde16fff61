"""Run the team's own scenarios on both sides of a change, and find those whose verdict changes.

Where our model decides, they run in virtual time; where a scheduler's own program decides, that program runs them on an
embedded cluster, on each side in its own version.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ... import distribution, results
from ...api.errors import HarnessError
from ...schedulers.pdeathsig import dying_with_us
from .answer import TeamRules

_JUDGED = ("passed", "failed", "known", "by design")


def run_rules(
    features: list[Path],
    policies: tuple[str, str],
    schedulers: tuple[str, str] = ("", ""),
    programs: Path | None = None,
) -> TeamRules:
    """Run features on each side.

    A policy that scenarios name counts as changed if its file in `policies/` beside the features has the text of one of
    the two policies. A scenario that names any other policy has the same verdict under both.

    `policies`: the policy of each side; empty if the scheduler reads none of these files. `schedulers`: the scheduler
    of each side, as `--scheduler` names it; empty for our scheduler in virtual time.
    """
    with tempfile.TemporaryDirectory() as folder:
        (before, problem), (after, worse) = (
            _verdicts(features, policies, policy, [*_on(scheduler, programs)], Path(folder) / side)
            for side, policy, scheduler in zip(("now", "proposed"), policies, schedulers, strict=True)
        )
    flips = [
        f"{name}: {before[name]} → {verdict}"
        for name, verdict in sorted(after.items())
        if name in before and before[name] != verdict
    ]
    return TeamRules(len(after), flips, problem or worse, " and ".join(dict.fromkeys(filter(None, schedulers))))


def _on(scheduler: str, programs: Path | None) -> Iterator[str]:
    if not scheduler:
        yield from ("--cluster", "simulated")
        return
    yield from ("--cluster", "embedded", "--scheduler", scheduler)
    if programs is not None:
        yield from ("--scheduler-binaries", str(programs))


def _own_policies(features: list[Path], sides: tuple[str, str], policy: str, copy: Path) -> Path | None:
    """Copy the team's policies; those equal to a side get the text `policy`. Return None if none equals a side."""
    beside = (above / "policies" for feature in features for above in (feature.resolve(), *feature.resolve().parents))
    folder = next((path for path in beside if path.is_dir()), None)
    changed = [path for path in sorted(folder.glob("*.yaml")) if path.read_text("utf-8") in sides] if folder else []
    if folder is None or not changed:
        return None
    shutil.copytree(folder, copy)
    for path in changed:
        (copy / path.name).write_text(policy, "utf-8")
    return copy


def _verdicts(
    features: list[Path], sides: tuple[str, str], policy: str, options: list[str], folder: Path
) -> tuple[dict[str, str], str]:
    folder.mkdir()
    if policy:
        file = folder / "policy.yaml"
        file.write_text(policy, "utf-8")
        options += ["--policy", str(file)]
        if own := _own_policies(features, sides, policy, folder / "policies"):
            options += ["-o", f"schedspec_policies={own}"]
    options += ["--out", str(folder / "out"), "-q", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-p", "schedspec.plugin", *map(str, features), *options]
    ran = subprocess.run(
        dying_with_us(*command), env=distribution.environment(), capture_output=True, text=True, check=False
    )
    try:
        found = results.read(folder / "out" / "results.json").results
    except HarnessError:
        last = ran.stdout.strip().splitlines()[-1:] or ["no output"]
        return {}, f"the scenarios could not be run: {last[0]}"
    return {result.node_id: result.verdict for result in found if result.verdict in _JUDGED}, ""
