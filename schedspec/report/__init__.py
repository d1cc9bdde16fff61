"""What a run leaves: a record of each scenario, the page and the exports drawn from records, the text of a failure.

``build`` is what `schedspec report` and `schedspec ci --join` call.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

__all__ = ["build"]


def build(
    directories: Sequence[Path],
    page: Path,
    *,
    perfetto: Path | None = None,
    cucumber_messages: Path | None = None,
    root: Path | None = None,
) -> int:
    """Join the records below `directories` (shards, runs, clusters) into one page, and further files on request; how
    many scenarios there are. Of several records of one scenario on one cluster with one scheduler the youngest counts.

    Where runs of several schedulers, or versions, are among them, what each does is a page of it.

    `root` is where the feature files are, which Cucumber Messages hold: the working directory if it is not named.

    Raises:
        RecordError: no record, one that cannot be read, or a feature file that has changed since.
    """
    from . import cucumber, html, matrix, record, results  # noqa: PLC0415 - who only wants records needs no page
    from . import perfetto as trace  # noqa: PLC0415

    records = list(record.read_all(directories))
    if not records:
        names = ", ".join(map(str, directories))
        raise record.RecordError(f"no record of a scenario below {names}: name the folder beside a JUnit file of a run")
    found = matrix.make(results.read_all(directories))
    html.write(records, page, [matrix.view(found, records)] if len(found.columns) > 1 else [])
    if perfetto is not None:
        trace.write(records, perfetto)
    if cucumber_messages is not None:
        cucumber.write(records, root or Path.cwd(), cucumber_messages)
    return len(records)
