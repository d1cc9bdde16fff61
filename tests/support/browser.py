"""Open pages in the system's Chromium, driven by playwright. Tests are skipped if there is no Chromium."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_QUIET = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)


class Browser:
    """Opens pages. A script error, or a request other than for the page itself, fails the test."""

    def __init__(self, chromium: Any) -> None:
        self._chromium = chromium

    @contextmanager
    def page(self, path: Path, anchor: str = "", *, width: int = 1440, **more: Any) -> Iterator[Any]:
        """Yield a loaded page of a file. `more`: arguments of playwright's `new_context`."""
        context = self._chromium.new_context(viewport={"width": width, "height": 1000}, **more)
        context.set_default_timeout(30_000)
        page = context.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: errors.append(request.url))
        url = path.as_uri() + (f"#{anchor}" if anchor else "")
        try:
            page.goto(url)
            yield page
            unexpected = [it for it in errors if it.partition("#")[0] != path.as_uri()]
            assert not unexpected, unexpected
        finally:
            context.close()


@contextmanager
def chromium() -> Iterator[Browser]:
    """Yield a started browser."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("no chromium on this machine: apt-get install chromium")
    sync_api = pytest.importorskip("playwright.sync_api")
    sync_api.expect.set_options(timeout=30_000)
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=list(_QUIET))
        try:
            yield Browser(started)
        finally:
            started.close()
