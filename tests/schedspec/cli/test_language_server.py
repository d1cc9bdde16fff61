"""`schedspec check --lsp` with a client: errors stand where they are, and sentences and names are completed."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from schedspec import distribution

FEATURE = """Feature: f
  Scenario: s
    Given these queues:
      | queue    | weight |
      | research | 1      |
    When these jobs are submitted:
      | job   | queue    | cpu |
      | train | research | 1   |
    Then "tr
    And exactly
"""
ERRORS = {(8, 'no step matches: Then "tr'), (9, "no step matches: And exactly")}


async def edited(path: Path) -> dict[str, Any]:
    """Open the file in an editor; return what the editor shows of it and offers in it."""
    client = LanguageClient("editor", "1")
    shown: asyncio.Future[list[types.Diagnostic]] = asyncio.get_running_loop().create_future()

    @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    def published(params: types.PublishDiagnosticsParams) -> None:
        if not shown.done():
            shown.set_result(list(params.diagnostics))

    del published
    uri = path.as_uri()
    command = ["-m", "schedspec", "check", "--lsp"]
    await client.start_io(sys.executable, *command, cwd=str(path.parent), env=distribution.environment())
    try:
        await client.initialize_async(types.InitializeParams(types.ClientCapabilities(), root_uri=path.parent.as_uri()))
        document = types.TextDocumentItem(uri, "cucumber", 1, path.read_text("utf-8"))
        client.text_document_did_open(types.DidOpenTextDocumentParams(document))
        where = types.TextDocumentIdentifier(uri)
        offered = {}
        for line, column in ((8, 12), (9, 15)):
            params = types.CompletionParams(where, types.Position(line, column))
            found = await client.text_document_completion_async(params)
            assert isinstance(found, list)
            offered[line] = [item.label for item in found]
        for absent in ((path.parent / "absent.feature").as_uri(), "untitled:Untitled-1"):
            params = types.CompletionParams(types.TextDocumentIdentifier(absent), types.Position(0, 0))
            assert await client.text_document_completion_async(params) == []
        found = {"offered": offered, "shown": await asyncio.wait_for(shown, 120)}
        await client.shutdown_async(None)
        client.exit(None)
        assert client._server is not None
        return {**found, "status": await asyncio.wait_for(client._server.wait(), 60)}
    finally:
        await client.stop()


def test_an_editor_shows_errors_and_completes_names_and_sentences(tmp_path: Path) -> None:
    (tmp_path / "tox.ini").write_text("[pytest]\n")
    path = tmp_path / "some.feature"
    path.write_text(FEATURE, "utf-8")
    found = asyncio.run(edited(path))
    assert found["status"] == 0
    assert "train" in found["offered"][8]
    assert "research" not in found["offered"][8]
    assert all("exactly" in label for label in found["offered"][9])
    assert "exactly these pods are evicted, once each:" in found["offered"][9]
    assert "these queues:" not in found["offered"][9]
    assert {(it.range.start.line, it.message.splitlines()[0]) for it in found["shown"]} == ERRORS
