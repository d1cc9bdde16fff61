"""Check before a cluster boots that the programs of the cluster and of the scheduler exist or can be built.

Without Go, missing programs are downloaded, as the session would do. With Go, the check is that Go can build them.
Programs that can be neither built nor downloaded (no Go, a Go that is too old, no network) are one usage error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from .. import clusters
from ..api.errors import HarnessError
from ..clusters import ClusterError, Settings
from ..options import Options


def check(options: Options, progress: Callable[[str], None]) -> None:
    """Check the programs of the run's cluster and scheduler.

    Raises:
        pytest.UsageError: programs are missing; the text names them, the places and what to do next.
    """
    problems = list(_problems(options, clusters.resolve(options.settings), progress))
    if problems:
        raise pytest.UsageError("\n".join(problems))


def _problems(options: Options, settings: Settings, progress: Callable[[str], None]) -> Iterator[str]:
    try:
        clusters.require_programs(settings, progress)
    except ClusterError as problem:
        yield f"cluster {settings.kind}: {problem}"
    try:
        options.adapter.require_programs(settings, options.scheduler_binaries, progress)
    except (ClusterError, HarnessError) as problem:
        yield f"scheduler {options.adapter}: {problem}"
