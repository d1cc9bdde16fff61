"""Logs: one JSON object a line, tracebacks included, without secrets."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from schedspec.scheduler.live import log


@pytest.fixture
def as_in_a_process() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    log.set_up("info")
    yield
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()


@pytest.mark.usefixtures("as_in_a_process")
def test_a_traceback_names_functions_but_no_values_of_variables(capsys: pytest.CaptureFixture[str]) -> None:
    log.set_up("info")
    token = "Bearer the-secret"
    try:
        raise ValueError(f"refused after {len(token)} characters")
    except ValueError:
        logging.getLogger("x").exception("a request failed")
    (line,) = capsys.readouterr().err.splitlines()
    record = json.loads(line)
    assert record["message"] == "a request failed"
    assert record["exception"][0]["exc_value"] == "refused after 17 characters"
    assert record["exception"][0]["frames"][0]["name"] == "test_a_traceback_names_functions_but_no_values_of_variables"
    assert "the-secret" not in line
