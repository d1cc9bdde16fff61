"""Show a first verdict while programs still have to be built: the same features in the simulated cluster.

A first run on an embedded cluster downloads or builds its programs, which takes minutes. On a terminal, another process
first runs the same arguments in virtual time. It leaves no record, and its exit status does not count.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from .. import clusters, distribution
from ..clusters import ClusterError
from ..options import READ_BY, Options
from ..schedulers import Own
from ..schedulers.pdeathsig import dying_with_us

_NOT_SIMULATED = {"--reuse-cluster", "--keep-cluster", "--pause-on-failure"}
"""Switches that a simulated cluster refuses, or that wait for the user."""


def show(config: pytest.Config, options: Options, progress: Callable[[str], None]) -> None:
    """Run the features in the simulated cluster if this is a terminal and the run's cluster lacks programs."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not reporter.isatty or type(options.adapter) is not Own or options.adapter.in_pods:
        return
    missing = _missing(options)
    if not missing:
        return
    names = ", ".join(missing)
    progress(f"{names}: not built yet. First a preview: the same features in the simulated cluster (virtual time)")
    with tempfile.TemporaryDirectory(prefix="schedspec-preview-") as folder:
        capture = config.pluginmanager.get_plugin("capturemanager")
        assert capture is not None
        with capture.global_and_fixture_disabled():
            reporter.ensure_newline()
            subprocess.run(
                dying_with_us(*command(config.invocation_params.args, Path(folder))),
                cwd=config.invocation_params.dir,
                env=distribution.environment(),
                check=False,
            )
    progress("preview: it ends here, without exit status and record; the run on the embedded cluster counts")
    progress(
        f"{names}: made now, once; elsewhere that took 2 to 8 minutes with Go, less where releases can be downloaded"
    )


def command(arguments: Sequence[object], folder: Path) -> list[str]:
    """Return the command of the preview: the arguments of the run, its outputs in `folder`."""
    words = [str(argument) for argument in arguments if argument not in _NOT_SIMULATED]
    own = ["--cluster=simulated", "--kubernetes-version=", f"--out={folder / 'out'}"]
    own += [f"--{flag}=" for flag in READ_BY]
    own += [f"--junitxml={folder / 'junit.xml'}", "--record=failed", "-p", "no:cacheprovider"]
    return [sys.executable, "-m", "pytest", "-p", "schedspec.plugin", *words, *own]


def _missing(options: Options) -> list[str]:
    """Return the programs of an embedded cluster that have to be made; none for another kind of cluster."""
    try:
        return clusters.missing_programs(clusters.resolve(options.settings))
    except ClusterError:  # the run itself reports it
        return []
