"""Run the team's own scenarios under both policies in virtual time, and find those whose verdict changes."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from ... import distribution, results
from ...api.errors import HarnessError
from .answer import TeamRules

_JUDGED = ("passed", "failed", "known", "by design")


def run_rules(features: list[Path], policies: tuple[str, str]) -> TeamRules:
    """Run features with each policy.

    A policy that scenarios name counts as changed if its file in `policies/` beside the features has the text of one of
    the two policies. A scenario that names any other policy has the same verdict under both.
    """
    with tempfile.TemporaryDirectory() as folder:
        before, problem = _verdicts(features, policies, policies[0], Path(folder) / "now")
        after, worse = _verdicts(features, policies, policies[1], Path(folder) / "proposed")
    flips = [
        f"{name}: {before[name]} → {verdict}"
        for name, verdict in sorted(after.items())
        if name in before and before[name] != verdict
    ]
    return TeamRules(len(after), flips, problem or worse)


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


def _verdicts(features: list[Path], sides: tuple[str, str], policy: str, folder: Path) -> tuple[dict[str, str], str]:
    folder.mkdir()
    file = folder / "policy.yaml"
    file.write_text(policy, "utf-8")
    options = [
        "--cluster",
        "simulated",
        "--policy",
        str(file),
        "--out",
        str(folder / "out"),
        "-q",
        "-p",
        "no:cacheprovider",
    ]
    if own := _own_policies(features, sides, policy, folder / "policies"):
        options += ["-o", f"schedspec_policies={own}"]
    command = [sys.executable, "-m", "pytest", "-p", "schedspec.plugin", *map(str, features), *options]
    ran = subprocess.run(command, env=distribution.environment(), capture_output=True, text=True, check=False)
    try:
        found = results.read(folder / "out" / "results.json").results
    except HarnessError:
        last = ran.stdout.strip().splitlines()[-1:] or ["no output"]
        return {}, f"the scenarios could not be run: {last[0]}"
    return {result.node_id: result.verdict for result in found if result.verdict in _JUDGED}, ""
