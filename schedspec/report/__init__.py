"""Write the results of a run: a record of each scenario, the page and exports made from records, failure texts.

`build` is the entry point of `schedspec report` and `schedspec ci --join`.

1. At the end of a scenario, `from_run` makes its `record`, with what `course` computes. If the
   scenario failed, `failure` writes its text, and everything that is known.
2. `html` renders records as a page. `timeline` draws a scenario lane by lane into a `picture`.
3. `comparison` and `matrix` compare runs; `perfetto` and `cucumber` write records for other tools.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .. import results

__all__ = ["build"]


def build(
    directories: Sequence[Path],
    page: Path,
    *,
    perfetto: Path | None = None,
    cucumber_messages: Path | None = None,
    root: Path | None = None,
    against: Path | None = None,
) -> int:
    """Join the records below `directories` (shards, runs, clusters) into one page and, on request, further files.

    If several records are of one scenario, cluster and scheduler, only the newest counts.
    If the records are of several schedulers or versions, one page compares them. With `against`, the folder of another
    run, one page shows the differences. `root` is the folder of the feature files, which Cucumber Messages contain; by
    default the working directory.

    Returns:
        The number of scenarios.

    Raises:
        RecordError: There is no record, a record cannot be read, or a feature file has changed since the run.
    """
    from . import comparison, cucumber, html, matrix, record  # noqa: PLC0415 - only for pages
    from . import perfetto as trace  # noqa: PLC0415

    records = list(record.read_all(directories))
    if not records:
        names = ", ".join(map(str, directories))
        raise record.RecordError(f"no record of a scenario below {names}: pass the folder of a run")
    runs = list(results.read_all(directories))
    found = matrix.make(runs)
    views = [matrix.view(found, records)] if len(found.columns) > 1 else []
    if against is not None:
        others = list(results.read_all([against]))
        if not others:
            raise record.RecordError(f"no results of a run below {against}: pass the folder of a run with --against")
        views.append(comparison.view(comparison.compare(others, runs), str(against)))
    html.write(records, page, views, html.without_record(runs, records))
    if perfetto is not None:
        trace.write(records, perfetto)
    if cucumber_messages is not None:
        cucumber.write(records, root or Path.cwd(), cucumber_messages)
    return len(records)
