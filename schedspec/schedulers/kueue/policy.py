"""A policy of Kueue in one file: its configuration, and the preemption settings of every ClusterQueue.

* `configuration`: merged into Kueue's Configuration, for instance `{fairSharing: {…}}`.
* `featureGates`: for instance `{TopologyAwareScheduling: false}`.
* `gatesSince`: feature gates by the version that introduced them, `{v0.19.2: {PrioritizePreemptorWorkloads: true}}`.
  An older Kueue would reject them and runs without them.
* `clusterQueue`: merged into the spec of each ClusterQueue, for instance `{preemption: {reclaimWithinCohort: Any}}`.
* `shares`: how the scenario's queues become quotas (quota.py): `amounts`, `parts`, `weights`, `flavors` or `use`.
* `topology`: whether Kueue counts what is free on each node, also where the scenario's nodes are in no racks.
* `tiers`: the rules for the monitors, in the format of our policies.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import yaml

from ...api.errors import PolicyRefusedError


class KueuePolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parts of a policy file."""

    configuration: dict[str, Any] = {}
    featureGates: dict[str, bool] = {}  # noqa: N815 - Kueue's word
    gatesSince: dict[str, dict[str, bool]] = {}  # noqa: N815 - like Kueue's words
    clusterQueue: dict[str, Any] = {}  # noqa: N815 - Kueue's word
    shares: Literal["amounts", "parts", "weights", "flavors", "use"] = "amounts"
    topology: bool = False
    tiers: list[dict[str, Any]] = []

    def gates(self, version: str) -> dict[str, bool]:
        known = [gates for since, gates in self.gatesSince.items() if _numbers(since) <= _numbers(version)]
        return {name: on for gates in (self.featureGates, *known) for name, on in gates.items()}

    def within(self, outer: KueuePolicy) -> KueuePolicy:
        """Return this policy in a configuration; what the policy says itself comes first."""
        return msgspec.structs.replace(
            self,
            configuration={**outer.configuration, **self.configuration},
            featureGates={**outer.featureGates, **self.featureGates},
            topology=self.topology or outer.topology,
        )


def _numbers(version: str) -> list[int]:
    """Return `[0, 19, 2]` for `v0.19.2`; for a name that is no version, a number above all versions."""
    parts = version.removeprefix("v").split("-")[0].split(".")
    return [int(part) for part in parts] if all(part.isdecimal() for part in parts) else [10**9]


def read(text: str) -> KueuePolicy:
    try:
        return msgspec.convert(yaml.safe_load(text) or {}, KueuePolicy)
    except (msgspec.ValidationError, yaml.YAMLError) as problem:
        raise PolicyRefusedError(f"this is not a policy of Kueue:\n  {problem}", str(problem)) from None
