"""Measure the size of a report, the time to write it, and the time until a browser shows it.

    python -m benchmarks.report DIR…      # folders of runs

Records are repeated, each as another scenario, until there are 76. The browser is the system's Chromium, which opens
the report five times.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from schedspec.report import html, record

SCENARIOS, TIMES = 76, 5
READY = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"


def main() -> None:
    found = list(record.read_all(map(Path, sys.argv[1:])))
    if not found:
        sys.exit(__doc__)
    many = [
        msgspec.structs.replace(found[n % len(found)], line=1000 * (n // len(found)) + found[n % len(found)].line)
        for n in range(SCENARIOS)
    ]
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        page = html.write(many, Path(folder) / "report.html")
        print(
            f"{SCENARIOS} scenarios: {page.stat().st_size / 1e6:.2f} MB, written in {time.perf_counter() - began:.2f} s"
        )
        program = shutil.which("chromium")
        if program is None:
            sys.exit("no chromium on this machine: apt-get install chromium")
        from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only where there is a browser

        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
            tab = browser.new_page()
            times = []
            for _ in range(TIMES):
                tab.goto(page.as_uri())
                times.append(tab.evaluate(READY))
            print(
                f"ready in the browser: {statistics.median(times):.0f} ms (median of {TIMES}, {max(times):.0f} at most)"
            )
            browser.close()


if __name__ == "__main__":
    main()
