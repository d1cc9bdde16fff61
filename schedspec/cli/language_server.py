"""The language server of `schedspec check --lsp`: errors where they stand, and completion, in any editor.

A feature is checked when it is opened, changed or saved, by the collection of `schedspec check`, one check at a time.
A version that is no longer the newest when its turn comes is not checked, and one that is replaced meanwhile is not
shown. Needs the extra `lsp` (pygls).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from .. import steps
from ..gherkin import catalogue
from ..gherkin.completion import Sentence, completions
from . import collected

_ENDLESS = 10_000
"""A column behind the end of every line."""


def server(options: Sequence[str]) -> LanguageServer:
    """Return a server that checks features with these options of pytest; `start_io` serves one editor."""
    made, turn = LanguageServer("schedspec", "1"), asyncio.Lock()
    known = [
        Sentence(entry.type.lower().replace("any", ""), entry.sentence) for entry in catalogue.sentences(steps.MODULES)
    ]

    @made.feature(types.TEXT_DOCUMENT_DID_OPEN)
    @made.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    @made.feature(types.TEXT_DOCUMENT_DID_SAVE)
    async def changed(
        params: types.DidOpenTextDocumentParams | types.DidChangeTextDocumentParams | types.DidSaveTextDocumentParams,
    ) -> None:
        async with turn:
            document = made.workspace.get_text_document(params.text_document.uri)
            if getattr(params.text_document, "version", document.version) == document.version:
                await asyncio.to_thread(_check, made, document, options)

    @made.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=['"', " "]))
    def complete(params: types.CompletionParams) -> list[types.CompletionItem]:
        try:
            text = made.workspace.get_text_document(params.text_document.uri).source
        except OSError:  # the editor has neither opened nor saved it
            return []
        line, column = params.position.line, params.position.character
        return [_item(it, line, column) for it in completions(text, line, column, known)]

    del changed, complete
    return made


def _check(made: LanguageServer, document: TextDocument, options: Sequence[str]) -> None:
    path, version = Path(document.path), document.version
    if path.suffix != ".feature" or not path.is_file():  # a new file is checked once it is saved
        return
    text = document.source
    unsaved = {} if path.read_bytes() == text.encode() else {str(path): text}
    found, printed = collected.collect([path], *options, unsaved=unsaved)
    failures = found.failures if found is not None else [printed.strip()]
    problems = [problem for failure in failures for problem in collected.problems(failure)]
    shown = [_diagnostic(problem, path) for problem in problems]
    if document.version == version:
        made.text_document_publish_diagnostics(types.PublishDiagnosticsParams(document.uri, shown, version))


def _diagnostic(problem: dict[str, Any], path: Path) -> types.Diagnostic:
    """Return a problem as an editor shows it; one of another file stands in the first line."""
    is_here = Path(problem["file"]).name == path.name
    line = problem["line"] - 1 if is_here and problem["line"] else 0
    where = "" if is_here or not problem["file"] else f"{problem['file']}:{problem['line']}: "
    place = types.Range(types.Position(line, 0), types.Position(line, _ENDLESS))
    return types.Diagnostic(place, where + problem["text"], severity=types.DiagnosticSeverity.Error, source="schedspec")


def _item(found: Any, line: int, column: int) -> types.CompletionItem:
    place = types.Range(types.Position(line, found.start), types.Position(line, column))
    return types.CompletionItem(
        found.label,
        insert_text_format=types.InsertTextFormat.Snippet,
        filter_text=found.label,
        text_edit=types.TextEdit(place, found.snippet),
    )
