"""Generate pages of the site from the code: the sentences and the options. A hook of mkdocs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parents[1]))

from schedspec import options, steps
from schedspec.gherkin import catalogue


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages."""
    for name, content in (("sentences.md", _sentences()), ("options.md", _options())):
        files.append(File.generated(config, name, content=content))
    return files


def _sentences() -> str:
    head = "# Sentences\n\nWhat `schedspec steps` lists. A column that a table does not have is an error.\n\n"
    return head + catalogue.markdown(catalogue.sentences(steps.MODULES))


def _options() -> str:
    rows = ["# Options of pytest", "", "Each option can be set on the command line or in the ini file.", ""]
    rows += ["| option | ini | what it is for |", "| --- | --- | --- |"]
    for flag, (value, text) in options.FLAGS.items():
        rows.append(f"| `--{flag}{' ' + value if value else ''}` | `{options.ini_name(flag)}` | {text} |")
    return "\n".join(rows) + "\n"
