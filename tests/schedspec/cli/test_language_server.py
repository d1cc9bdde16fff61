"""`schedspec check --lsp` with a client: errors stand where they are, and sentences and names are completed."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
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
RIGHT = FEATURE.replace('"tr', '"train" runs').replace("    And exactly\n", "")


class Editor:
    """An editor with one open file: what it shows, version by version."""

    def __init__(self, client: LanguageClient, path: Path) -> None:
        self._client, self.uri, self._version = client, path.as_uri(), 1
        self._shown: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()

        @client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: types.PublishDiagnosticsParams) -> None:
            self._shown.put_nowait(params)

        del published
        document = types.TextDocumentItem(self.uri, "cucumber", 1, path.read_text("utf-8"))
        client.text_document_did_open(types.DidOpenTextDocumentParams(document))

    async def shows(self) -> tuple[int | None, set[tuple[int, str]]]:
        """Return the version and the errors that are shown next, each with its line."""
        found = await asyncio.wait_for(self._shown.get(), 120)
        return found.version, {(it.range.start.line, it.message.splitlines()[0]) for it in found.diagnostics}

    def types(self, text: str) -> None:
        """Change the file without saving it."""
        self._version += 1
        document = types.VersionedTextDocumentIdentifier(self._version, self.uri)
        change = types.TextDocumentContentChangeWholeDocument(text)
        self._client.text_document_did_change(types.DidChangeTextDocumentParams(document, [change]))

    def saves(self) -> None:
        """Tell the server that the file is saved."""
        document = types.TextDocumentIdentifier(self.uri)
        self._client.text_document_did_save(types.DidSaveTextDocumentParams(document))

    async def offers(self, line: int, column: int, uri: str = "") -> list[str]:
        """Return what the editor offers at a place."""
        document = types.TextDocumentIdentifier(uri or self.uri)
        params = types.CompletionParams(document, types.Position(line, column))
        found = await self._client.text_document_completion_async(params)
        assert isinstance(found, list)
        return [item.label for item in found]


@asynccontextmanager
async def edited(path: Path) -> AsyncIterator[Editor]:
    """Open the file in an editor whose server ends well."""
    client = LanguageClient("editor", "1")
    command = ["-m", "schedspec", "check", "--lsp"]
    await client.start_io(sys.executable, *command, cwd=str(path.parent), env=distribution.environment())
    try:
        await client.initialize_async(types.InitializeParams(types.ClientCapabilities(), root_uri=path.parent.as_uri()))
        yield Editor(client, path)
        await client.shutdown_async(None)
        client.exit(None)
        assert client._server is not None
        assert await asyncio.wait_for(client._server.wait(), 60) == 0
    finally:
        if client._server is not None and client._server.returncode is None:
            client._server.kill()
        await client.stop()


Session = Callable[[Callable[[Editor], Awaitable[None]]], None]


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """Return a function that runs what a user does with a feature in an editor."""
    (tmp_path / "tox.ini").write_text("[pytest]\n")
    path = tmp_path / "some.feature"
    path.write_text(FEATURE, "utf-8")

    async def does(use: Callable[[Editor], Awaitable[None]]) -> None:
        async with edited(path) as editor:
            await use(editor)
        assert path.read_text("utf-8") == FEATURE
        assert {it.name for it in tmp_path.iterdir() if it.is_file()} == {"tox.ini", "some.feature"}

    return lambda use: asyncio.run(does(use))


def test_an_editor_shows_errors_and_completes_names_and_sentences(session: Session) -> None:
    async def use(editor: Editor) -> None:
        names, sentences = await editor.offers(8, 12), await editor.offers(9, 15)
        assert "train" in names
        assert "research" not in names
        assert all("exactly" in label for label in sentences)
        assert "exactly these pods are evicted, once each:" in sentences
        assert "these queues:" not in sentences
        for absent in (editor.uri.replace("some", "absent"), "untitled:Untitled-1"):
            assert await editor.offers(0, 0, absent) == []
        assert await editor.shows() == (1, ERRORS)

    session(use)


def test_errors_and_completion_follow_a_text_that_is_not_saved(session: Session) -> None:
    async def use(editor: Editor) -> None:
        assert await editor.shows() == (1, ERRORS)
        editor.types(RIGHT)
        assert await editor.shows() == (2, set())
        editor.types(RIGHT.replace("train ", "build "))
        assert "build" in await editor.offers(8, 10)
        version, errors = await editor.shows()
        assert version == 3
        assert [line for line, _ in errors] == [8]
        editor.types(FEATURE)
        assert await editor.shows() == (4, ERRORS)
        editor.saves()
        assert await editor.shows() == (4, ERRORS)

    session(use)


def test_errors_are_of_the_version_that_is_shown_and_the_newest_is(session: Session) -> None:
    last = 30

    async def use(editor: Editor) -> None:
        for version in range(2, last + 1):
            editor.types(RIGHT.replace('"train" runs', f"version {version}"))
        shown: list[int | None] = []
        while last not in shown:
            version, errors = await editor.shows()
            shown.append(version)
            assert errors == {(8, f"no step matches: Then version {version}")} or version == 1
        assert shown == sorted(set(shown))
        assert len(shown) < last

    session(use)
