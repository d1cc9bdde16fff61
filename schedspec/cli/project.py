"""`schedspec steps` and `schedspec features`: list the sentences and find the features that come with schedspec."""

from __future__ import annotations

import click

from .. import distribution, steps
from ..api.errors import HarnessError
from ..clusters.protocol import ClusterError
from ..gherkin import catalogue
from . import collected, testing
from .answers import explains_errors, output_option, print_json


@click.command("steps")
@click.option("--markdown", is_flag=True, help="Print Markdown tables.")
@click.option("--language", default="", metavar="CODE", help="List only sentences of one language: en or zh-CN.")
@click.argument("words", nargs=-1)
@output_option
@explains_errors
def steps_command(markdown: bool, language: str, words: tuple[str, ...], output: str) -> int:
    """List the sentences that scenarios can use, with their meanings and the columns of their tables.

    Your own sentences, in a conftest or a folder that `schedspec_steps` names, come first.

    With WORDS, the command lists only sentences that have all of them: in the text, in the meaning, in a word that a
    placeholder accepts, or in a column of the table. Sentences with all of them in the text come first.

    \b
    Examples:
      schedspec steps evicted
      schedspec steps gpu node
      schedspec steps --markdown > sentences.md
      schedspec steps -o json | jq -r '.[].sentence'
    """
    ours = catalogue.sentences(steps.MODULES)
    languages = sorted({entry.language for entry in ours})
    if language and language not in languages:
        raise click.BadParameter(
            f"no sentences in {language!r}; there are: {', '.join(languages)}", param_hint="--language"
        )
    wanted = [word.lower() for word in words]
    found = [
        entry
        for entry in [*_own(), *ours]
        if (not language or entry.language == language) and all(word in _searched(entry) for word in wanted)
    ]
    if wanted:
        found.sort(key=lambda entry: not all(word in entry.sentence.lower() for word in wanted))
    if output == "json":
        print_json(found)
    else:
        click.echo(catalogue.markdown(found) if markdown else catalogue.text(found))
    if not found:
        click.echo(f"no sentence has all of these words: {' '.join(words)}", err=True)
    return 0 if found else 1


def _searched(entry: catalogue.CatalogueEntry) -> str:
    """Return everything of a sentence that a user may search for, in small letters."""
    lists = (*entry.words.values(), *entry.columns.values())
    return " ".join([entry.sentence, entry.meaning, *(word for words in lists for word in words)]).lower()


def _own() -> list[catalogue.CatalogueEntry]:
    """Return the own sentences of the project in the working directory; none if it has no features."""
    try:
        homes = testing.default_paths()
    except ClusterError:  # the command is useful without features, too
        return []
    found, printed = collected.collect(homes)
    if found is None:
        raise HarnessError(collected.error_in(printed))
    return found.sentences


@click.command("features")
def features_command() -> int:
    """Print the folder of the features that come with schedspec; they specify any scheduler.

    \b
    Examples:
      cp -r "$(schedspec features)" . && pytest features/gang --cluster embedded
    """
    click.echo(distribution.folder("features"))
    return 0
