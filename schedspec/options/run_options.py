"""The checked options of a run, as the rest of the harness uses them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ..ci import sharding
from ..clusters import Settings
from ..clusters.programs.pinned import kubernetes_versions
from ..schedulers import Adapter
from ..terminal import short_path
from .flags import ALWAYS, FEW


@dataclass(frozen=True, slots=True)
class Options:
    """The checked options of a run."""

    settings: Settings
    adapter: Adapter
    """The scheduler under test."""
    scheduler_binaries: Path | None
    """A folder with the programs of the scheduler."""
    policy: Path | None
    timeout_scale: float
    out: Path
    out_is_named: bool = False
    """True if the user set `--out` or `--junitxml`."""
    runs: int = 1
    """The number of runs of each scenario."""
    cucumber_messages: Path | None = None
    templates: tuple[Path, ...] = ()
    """Folders of templates; the first folder that has a template wins, and ours is the last."""
    policies: tuple[Path, ...] = ()
    """Folders of the user's own policies, beside `policies/` of the folders of templates."""
    record: str = ""
    """`always` or `failed`; empty if the number of scenarios decides."""
    shard: sharding.Shard | None = None
    shard_durations: dict[str, float] = field(default_factory=dict)
    """Seconds by node id."""
    pause: bool = False
    """Wait for Enter when a scenario has failed."""
    adopt_nodes: tuple[str, ...] = ()
    """The nodes of an existing cluster that scenarios may use."""
    features: tuple[Path, ...] = ()
    """The files and folders that the setting `schedspec_features` names."""
    steps: tuple[Path, ...] = ()
    """Files and folders with sentences of the user's own."""

    def records(self, scenarios: int) -> bool:
        """Return True if passed scenarios keep their recordings in a run of this many scenarios."""
        return self.record == ALWAYS or (not self.record and scenarios < FEW)

    @property
    def kubernetes_version(self) -> str:
        """The minor version of Kubernetes if it is known before the cluster exists; else empty."""
        pinned = next(iter(kubernetes_versions())) if self.settings.kind == "embedded" else ""
        return self.settings.kubernetes_version or pinned

    def header(self) -> str:
        """Return the line on cluster, scheduler and options at the top of the run."""
        settings = self.settings
        parts = [f"cluster {settings.kind}", f"scheduler {self.adapter}"]
        usual = self.adapter.gang_api == self.adapter.gang_apis[0]
        parts += [] if usual else [f"gang API {self.adapter.gang_api}"]
        parts += [f"scheduler programs {self.scheduler_binaries}"] if self.scheduler_binaries else []
        parts += [f"context {settings.kube_context}"] if settings.kube_context else []
        parts += [f"adopted nodes {', '.join(self.adopt_nodes)}"] if self.adopt_nodes else []
        parts += ["reused"] if settings.reuse else []
        parts += ["kept"] if settings.keep else []
        parts += [f"node image {settings.kind_image}"] if settings.kind_image else []
        parts += [f"kind configuration {settings.kind_config}"] if settings.kind_config else []
        parts += [f"binaries {settings.binaries}"] if settings.binaries else []
        parts += [f"policy {self.policy}"] if self.policy else []
        parts += [f"each scenario {self.runs} times"] if self.runs > 1 else []
        parts += [f"shard {self.shard}"] if self.shard else []
        parts += [f"timeouts x {self.timeout_scale:g}"] if self.timeout_scale != 1 else []
        replaced = "".join(f"\nschedspec: own {file}" for file in self._replaced())
        return f"schedspec: {', '.join(parts)}; reports in {short_path(self.out)}{replaced}"

    def _replaced(self) -> Iterator[str]:
        """Yield the templates and policies of ours that the user's own files replace."""
        *own, ours = self.templates
        for what, folders, known in (
            ("templates", own, ours),
            ("policies", [*self.policies, *(folder / "policies" for folder in own)], ours / "policies"),
        ):
            names = sorted(
                {file.name for folder in folders for file in folder.glob("*") if (known / file.name).is_file()}
            )
            if names:
                yield f"{what} replace ours: {', '.join(names)}"
