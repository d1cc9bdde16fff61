"""The commands in docs/recorder.md print what the page says, on the night that the page is about."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from schedspec import distribution
from schedspec.cli import schedspec
from tests.schedspec.lab.recorder.story import tell

PAGE = Path(__file__).parents[4] / "docs" / "recorder.md"
BLOCKS = re.findall(
    r"^```console\n\$ schedspec ([^\n]+)\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE
)
OTHERS = re.findall(r"^schedspec (\w+)[^\n]*", PAGE.read_text("utf-8"), re.MULTILINE)


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("night")
    tell(folder / "recording")
    return folder


@pytest.mark.parametrize(("command", "output"), BLOCKS, ids=[command for command, _ in BLOCKS])
def test_a_command_of_the_page_prints_what_the_page_says(
    night: Path, monkeypatch: pytest.MonkeyPatch, command: str, output: str
) -> None:
    monkeypatch.chdir(night)
    done = CliRunner().invoke(schedspec, shlex.split(command), standalone_mode=False)
    assert done.exception is None
    assert done.output.replace(distribution.prompt(), "schedspec") == output


def test_the_page_has_an_example_of_each_command() -> None:
    assert {command.split()[0] for command, _ in BLOCKS} | {*OTHERS} == {
        *("record", "judge", "who", "why", "report", "plan", "simulate", "reduce")
    }
    assert distribution.prompt()
