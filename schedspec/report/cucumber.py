"""Write a run as Cucumber Messages (NDJSON) for other tools: complete, in order, each validated by the library.

The feature files are parsed again, so that all ids are consistent. A record is matched to its pickle by line and
sentences. Monitors are a hook after the test case: a finding fails a scenario whose sentences all passed.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from cucumber_messages import Envelope, message_converter
from gherkin.ast_builder import AstBuilder
from gherkin.errors import ParserError
from gherkin.parser import Parser
from gherkin.pickles.compiler import Compiler
from gherkin.stream.id_generator import IdGenerator

from ..api import untrusted
from . import html
from .record import Failure, RecordError, ScenarioRecord

MEDIA_TYPE: Final = "text/x.cucumber.gherkin+plain"
_MAX_BYTES = 4 << 20
_MAX = 200_000
"""Maximum characters of a picture; a larger picture is only in the report."""
_STATUS = {"passed": "PASSED", "failed": "FAILED", "skipped": "SKIPPED"}
Message = dict[str, Any]


def write(records: Iterable[ScenarioRecord], root: Path, path: Path) -> Path:
    """Write the messages of a run whose feature files are below `root`; return the path. Raises RecordError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for message in messages(list(records), root):
            envelope = message_converter.from_dict(message, Envelope)
            file.write(json.dumps(message_converter.to_dict(envelope), separators=(",", ":")) + "\n")
    return path


def messages(records: Sequence[ScenarioRecord], root: Path) -> Iterator[Message]:
    """Yield the envelopes in the expected order. Raises RecordError: a feature file is missing or changed."""
    ids = IdGenerator()
    began = min((record.began for record in records), default=0.0)
    ended = max((record.began + record.seconds for record in records), default=0.0)
    yield {"meta": _meta()}
    pickles: dict[tuple[str, int, tuple[str, ...]], Message] = {}
    for uri in dict.fromkeys(record.feature_file for record in records if record.feature):
        yield from _document(uri, root, ids, pickles)
    hook, run = ids.get_next_id(), ids.get_next_id()
    where = {"uri": "schedspec/monitors", "location": {"line": 1}}
    yield {"hook": {"id": hook, "name": "monitors", "sourceReference": where, "type": "AFTER_TEST_CASE"}}
    yield {"testRunStarted": {"id": run, "timestamp": _time(began)}}
    cases = [(record, _case(_pickle(record, pickles), hook, run, ids)) for record in records if record.feature]
    yield from ({"testCase": case} for _, case in cases)
    for record, case in cases:
        yield from _execution(record, case, ids)
    success = all(record.verdict != "failed" for record in records)
    yield {"testRunFinished": {"success": success, "timestamp": _time(ended), "testRunStartedId": run}}


def _meta() -> Message:
    return {
        "protocolVersion": importlib.metadata.version("cucumber-messages"),
        "implementation": {"name": "schedspec"},
        "runtime": {"name": platform.python_implementation(), "version": platform.python_version()},
        "os": {"name": platform.system(), "version": platform.release()},
        "cpu": {"name": platform.machine()},
    }


def _document(uri: str, root: Path, ids: IdGenerator, into: dict[Any, Message]) -> Iterator[Message]:
    text = _feature(uri, root)
    try:
        parsed: Any = Parser(AstBuilder(ids)).parse(text)
    except ParserError:  # the error's text repeats lines of the file
        raise RecordError(f"{uri}: not valid Gherkin, though a record names it as its feature file") from None
    if not parsed.get("feature"):
        raise RecordError(f"{uri}: contains no feature, though a record names it as its feature file")
    document: Any = {**parsed, "uri": uri}
    yield {"source": {"uri": uri, "data": text, "mediaType": MEDIA_TYPE}}
    yield {"gherkinDocument": document}
    lines = dict(_lines(document["feature"]["children"]))
    pickles: Any = Compiler(ids).compile(document)
    for pickle in pickles:
        key = (uri, lines[pickle["astNodeIds"][0]], tuple(step["text"] for step in pickle["steps"]))
        into[key] = pickle
        yield {"pickle": pickle}


def _feature(uri: str, root: Path) -> str:
    """Return the text of a feature file below the root.

    A record may come from another machine, so the path that it names is checked after links are resolved.

    Raises:
        RecordError: The file is missing, outside of the root or not UTF-8. The error quotes nothing of the file.
    """
    outside = f"{uri!r}: a record names this file, which is not a feature file below {root}; leave the record out"
    try:
        path = (root / uri).resolve()
        if path.suffix != ".feature" or Path(uri).is_absolute() or not path.is_relative_to(root.resolve()):
            raise RecordError(outside)
        if not path.exists():
            raise RecordError(f"{uri}: records name this feature file, but it is not below {root}")
        return untrusted.read_bytes(path, _MAX_BYTES).decode("utf-8")
    except UnicodeDecodeError:
        raise RecordError(f"{uri}: not a feature file: not UTF-8") from None
    except (OSError, ValueError):  # a loop of symbolic links, or an invalid file name
        raise RecordError(outside) from None


def _lines(children: Iterable[Message]) -> Iterator[tuple[str, int]]:
    """Yield the id and the line of each scenario, also of scenarios in Rules."""
    for child in children:
        if "scenario" in child:
            yield child["scenario"]["id"], child["scenario"]["location"]["line"]
        elif "rule" in child:
            yield from _lines(child["rule"]["children"])


def _pickle(record: ScenarioRecord, pickles: dict[Any, Message]) -> Message:
    key = (record.feature_file, record.line, tuple(sentence.text for sentence in record.sentences))
    if key not in pickles:
        raise RecordError(f"{record.feature_file}:{record.line}: the file has changed since its scenario was recorded")
    return pickles[key]


def _case(pickle: Message, hook: str, run: str, ids: IdGenerator) -> Message:
    steps: list[Message] = [{"id": ids.get_next_id(), "pickleStepId": step["id"]} for step in pickle["steps"]]
    steps.append({"id": ids.get_next_id(), "hookId": hook})
    return {"id": ids.get_next_id(), "pickleId": pickle["id"], "testSteps": steps, "testRunStartedId": run}


def _execution(record: ScenarioRecord, case: Message, ids: IdGenerator) -> Iterator[Message]:
    started, at = ids.get_next_id(), record.began
    steps = case["testSteps"]
    yield {"testCaseStarted": {"id": started, "testCaseId": case["id"], "attempt": 0, "timestamp": _time(at)}}
    reported = False
    for sentence, step in zip(record.sentences, steps, strict=False):
        at = max(at, record.began + sentence.began)
        yield {"testStepStarted": {"testCaseStartedId": started, "testStepId": step["id"], "timestamp": _time(at)}}
        failure = record.failure if sentence.verdict == "failed" else None
        if failure is not None:
            reported = True
            yield from _picture(record, started, step["id"])
        at += sentence.seconds
        yield _finished(started, step["id"], sentence.verdict, sentence.seconds, at, failure=failure)
    left = record.failure if not reported else None
    at = max(at, record.began + record.seconds)
    yield {"testStepStarted": {"testCaseStartedId": started, "testStepId": steps[-1]["id"], "timestamp": _time(at)}}
    if left is not None:
        yield from _picture(record, started, steps[-1]["id"])
    verdict = "failed" if left is not None else "skipped" if record.verdict == "skipped" else "passed"
    yield _finished(started, steps[-1]["id"], verdict, 0.0, at, failure=left)
    yield {"testCaseFinished": {"testCaseStartedId": started, "timestamp": _time(at), "willBeRetried": False}}


def _finished(case: str, step: str, verdict: str, seconds: float, at: float, *, failure: Failure | None) -> Message:
    result: Message = {"duration": _time(seconds), "status": _STATUS[verdict]}
    if failure is not None:
        result["message"] = failure.text
        result["exception"] = {"type": "Unmet" if failure.expected else "Error", "message": failure.text}
    ids = {"testCaseStartedId": case, "testStepId": step}
    return {"testStepFinished": {**ids, "testStepResult": result, "timestamp": _time(at)}}


def _picture(record: ScenarioRecord, case: str, step: str) -> Iterator[Message]:
    picture = html.picture(record)
    if len(picture) <= _MAX:
        of = {"contentEncoding": "IDENTITY", "mediaType": "image/svg+xml", "fileName": f"{record.anchor}.svg"}
        yield {"attachment": {"body": picture, **of, "testCaseStartedId": case, "testStepId": step}}


def _time(seconds: float) -> Message:
    """Return a timestamp or a duration, which have the same form."""
    whole = int(seconds)
    return {"seconds": whole, "nanos": min(999_999_999, round((seconds - whole) * 1e9))}
