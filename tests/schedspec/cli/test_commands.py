"""The command line: help with examples, completion, JSON, and errors without a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete

from schedspec import cli, distribution
from schedspec.cli import answers, testing
from schedspec.options import FLAGS

OutputOf = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def output_of(tmp_path: Path) -> OutputOf:
    """Return a function that runs a command in an empty folder."""

    def run(*arguments: str, given: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {key: value for key, value in distribution.environment().items() if "GITHUB" not in key}
        return subprocess.run(
            [sys.executable, "-P", "-m", "schedspec", *arguments],
            cwd=tmp_path,
            env={**environment, **variables},
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def commands() -> dict[str, click.Command]:
    context = click.Context(cli.schedspec)
    found = {name: cli.schedspec.get_command(context, name) for name in cli.schedspec.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_command_has_help_with_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([name, "--help"])
    text = capsys.readouterr().out
    assert ended.value.code == 0
    assert f"schedspec {name}" in text.lower().partition("example")[2]


def test_the_help_lists_every_command(output_of: OutputOf) -> None:
    text = output_of("--help").stdout
    assert all(f"  {name} " in text for name in commands())


def test_the_help_of_test_lists_every_option_of_a_run(output_of: OutputOf) -> None:
    text = output_of("test", "--help").stdout
    assert [flag for flag in FLAGS if f"  --{flag}" not in text] == []


@pytest.mark.parametrize("text", ["README.md", "action.yml", "docs/getting-started.md"])
def test_every_kind_of_cluster_is_named_where_users_choose_one(text: str) -> None:
    named = (Path(__file__).parents[3] / text).read_text("utf-8")
    assert "simulated" in named
    assert "embedded" in named


@pytest.mark.parametrize("command", ["test", "ci", "reduce", "explore"])
def test_the_help_names_every_kind_of_cluster_that_needs_no_other_option(output_of: OutputOf, command: str) -> None:
    assert "simulated" in output_of(command, "--help").stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_a_completion_script(output_of: OutputOf, shell: str) -> None:
    assert "_SCHEDSPEC_COMPLETE" in output_of("completion", shell).stdout


@pytest.mark.parametrize(
    ("words", "begun", "offered"),
    [
        ([], "re", {"record", "reduce", "report"}),
        (["scheduler"], "re", {"replay"}),
        (["up"], "--kind", {"--kind-image", "--kind-config"}),
        (["scheduler", "run"], "--leader", {"--leader-elect"}),
        (["run"], "--leader", {"--leader-elect"}),
        (["scheduler", "controllers"], "--queue-", {"--queue-selector", "--queue-command-namespace"}),
        (["scheduler", "explain"], "--cy", {"--cycle"}),
    ],
)
def test_commands_and_options_are_completed(words: list[str], begun: str, offered: set[str]) -> None:
    completes = ShellComplete(cli.schedspec, {}, "schedspec", "_SCHEDSPEC_COMPLETE")
    assert {item.value for item in completes.get_completions(words, begun)} == offered


@pytest.mark.parametrize(
    ("words", "near"),
    [(["stepz"], "steps"), (["scheduler", "repaly"], "replay"), (["lintt"], "lint"), (["schedular"], "scheduler")],
)
def test_the_error_for_an_unknown_command_suggests_the_nearest(
    output_of: OutputOf, words: list[str], near: str
) -> None:
    done = output_of(*words)
    assert (done.returncode, f"no such command: {words[-1]!r} (is {near!r} meant?)" in done.stderr) == (2, True)


def test_help_and_errors_of_scheduler_commands_have_the_common_format(output_of: OutputOf) -> None:
    texts = {
        name: output_of("scheduler", name, "--help").stdout
        for name in ("run", "controllers", "lint", "explain", "replay")
    }
    for name, text in texts.items():
        assert text.startswith(f"Usage: python -m schedspec scheduler {name} [OPTIONS]")
        assert "  -h, --help " in text and "Show this message and exit." in text  # noqa: PT018
        assert "python -m scheduler" not in text
    for words in (["scheduler", "explain"], ["explain"], ["up", "--cluster", "none"]):
        text = output_of(*words).stderr
        assert [text.count(it) for it in ("Usage: ", "\nTry '", "\nError: ")] == [1, 1, 1], text


@pytest.mark.parametrize("name", ["lint", "explain", "replay", "run", "controllers"])
def test_scheduler_commands_also_work_without_the_word_scheduler(output_of: OutputOf, name: str) -> None:
    alone, below = output_of(name, "--help").stdout, output_of("scheduler", name, "--help").stdout
    assert alone.partition("Options:")[2] == below.partition("Options:")[2] != ""


@pytest.mark.parametrize("command", ["run", "controllers"])
def test_the_error_for_a_missing_kubeconfig_is_one_line(output_of: OutputOf, command: str) -> None:
    done = output_of(command, "--kubeconfig", "missing.yaml")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "missing.yaml" in done.stderr


def test_lint_reads_several_files_and_the_standard_input(output_of: OutputOf, tmp_path: Path) -> None:
    good = (distribution.folder("templates") / "policies/default.yaml").read_text()
    (tmp_path / "a.yaml").write_text(good)
    done = output_of("lint", "a.yaml", "-", "-o", "json", given="actions: bogus\ntiers: []\n")
    found = json.loads(done.stdout)
    assert done.returncode == 1
    assert {it["source"] for it in found if it["is_error"]} == {"<stdin>"}
    assert output_of("lint", "b.yaml").returncode == 2


def test_steps_lists_the_words_and_columns_of_a_sentence(output_of: OutputOf) -> None:
    (work, *_) = json.loads(output_of("steps", "submitted", "work", "-o", "json").stdout)
    assert "PyTorchJobs" in work["words"]["work"]
    assert "workers" in work["columns"]["PyTorchJobs"]
    assert "min available" in work["columns"]["jobs"]
    chinese = json.loads(output_of("steps", "--language", "zh-CN", "-o", "json").stdout)
    (submitted,) = [it for it in chinese if it["sentence"] == "提交以下{work:Work}："]
    assert "卡数" in submitted["columns"]["作业"]
    page = output_of("steps", "--markdown").stdout
    assert '| Then | `"{name}" runs` | Every pod that the workload wants is Running. |' in page


def test_steps_finds_sentences_by_columns_and_words(output_of: OutputOf) -> None:
    def found(*words: str) -> list[str]:
        return [it["sentence"] for it in json.loads(output_of("steps", *words, "-o", "json").stdout)]

    assert {"these nodes:", "these {work:Work} run:"} <= {*found("gpus")}
    assert 'job "{name}" has {counter:Counter} {number:d}' in found("retrycount")
    codes = found("exit", "code")
    assert "exit code" in codes[0]
    assert "these {work:Work} run:" in codes[1:]


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["evictde"], 1, "no sentence has all of these words: evictde"),
        (["--language", "zh"], 2, "no sentences in 'zh'; there are: en, zh-CN"),
    ],
)
def test_steps_says_why_it_lists_nothing(output_of: OutputOf, words: list[str], status: int, message: str) -> None:
    done = output_of("steps", *words)
    assert (done.returncode, message in done.stderr) == (status, True), done.stderr


def test_steps_prints_a_list_of_columns_once(output_of: OutputOf) -> None:
    lines = [line.strip() for line in output_of("steps").stdout.splitlines()]
    lists = [line for line in lines if line.startswith("columns") and " as of " not in line and "," in line]
    assert len(lists) == len({*lists}) > 3
    assert lines.count("columns as in `these {work:Work} are submitted:`") >= 3


def test_every_sentence_with_a_table_lists_its_columns() -> None:
    from schedspec import steps  # noqa: PLC0415 - for the same reason
    from schedspec.gherkin import bdd, catalogue  # noqa: PLC0415 - pytest_bdd is imported where it is needed

    known = {it.sentence: it.columns for it in catalogue.sentences(steps.MODULES)}
    takes = {it.pattern for it in bdd.all_definitions() if "datatable" in it.function.__code__.co_varnames}
    assert [pattern for pattern in takes if pattern in known and not known[pattern]] == []


def test_check_reports_errors_with_file_and_line(output_of: OutputOf, tmp_path: Path) -> None:
    output_of("init")
    with (tmp_path / "features/lending.feature").open("a") as file:
        file.write('      And "build" flies\n')
    (tmp_path / "policies/broken.yaml").write_text("actions: bogus\n")
    done = output_of("check", "-o", "json")
    errors = {(it["file"], it["text"].partition("\n")[0]) for it in json.loads(done.stdout) if it["kind"] == "error"}
    assert done.returncode == 1
    assert ("features/lending.feature", 'no step matches: And "build" flies') in errors
    assert any(file == "policies/broken.yaml" for file, _ in errors)


@pytest.mark.parametrize("name", ["f.FEATURE", "f.feature.txt", "f.Feature"])
def test_check_says_how_a_feature_is_named(output_of: OutputOf, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(FEATURE)
    done = output_of("check", name)
    assert done.returncode == 1
    assert f"{name}:1: the name of a feature ends with .feature, in lower case: rename the file" in done.stdout


@pytest.mark.parametrize("refuses", [answers.explains_errors, answers.refuses_bad_input])
@pytest.mark.parametrize("place", ["file/below", "folder", "gone/file"])
def test_a_place_that_cannot_be_written_is_named_without_a_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], refuses: Callable[..., Callable[..., int]], place: str
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    assert refuses((tmp_path / place).write_text)("x") in (1, 2)
    assert f"{place}: " in (printed := capsys.readouterr().err)
    assert "do next: name another file or folder" in printed


def test_an_error_of_the_system_without_a_file_is_a_defect() -> None:
    def broken() -> int:
        raise OSError("no file")

    for refuses in (answers.explains_errors, answers.refuses_bad_input):
        with pytest.raises(OSError, match="no file"):
            refuses(broken)()


def test_check_and_pytest_report_the_same_errors(output_of: OutputOf, tmp_path: Path) -> None:
    output_of("init")
    feature = tmp_path / "features/lending.feature"
    text = feature.read_text().replace("| gpus 2 ", "| gpus two").replace("  Back", "  Backgroud: lost\n\n  Back")
    feature.write_text(text + '      And "biuld" keeps running\n      And nothing is evicted\n        | a |\n')
    errors = [it for it in json.loads(output_of("check", "-o", "json").stdout) if it["kind"] == "error"]
    found = [f"{it['file']}:{it['line']}: {it['text']}" for it in errors]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-p", "schedspec.plugin", "-p", "no:cacheprovider"]
    environment = distribution.environment()
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert len(found) >= 4
    assert "\n".join(found) in done.stdout


FEATURE = "Feature: f\n  Scenario: good\n    Then nothing\n  Scenario: bad\n    Then trouble\n"
STEPS = """\
from pytest_bdd import then

@then("nothing")
def _():
    pass

@then("trouble")
def _():
    raise ValueError("here")
"""


@pytest.mark.parametrize(
    ("argument", "named"),
    [("v2", True), ("v2/f.feature:24", True), ("v2/f.feature::good", True), ("v2::good", True), ("v3", False)],
)
def test_an_argument_names_a_path_that_exists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argument: str, named: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v2").mkdir()
    (tmp_path / "v2/f.feature").touch()
    assert testing.names_path([argument]) is named


@pytest.mark.parametrize("option", [f"--{flag}" for flag, (value, _) in FLAGS.items() if value] + ["-k", "-m", "-n"])
def test_the_value_of_an_option_names_no_features(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v2").mkdir()
    assert not testing.names_path([option, "v2"])
    assert testing.names_path([option, "v3", "v2"])


@pytest.mark.parametrize("option", [f"--{flag}" for flag, (value, _) in FLAGS.items() if not value] + ["-v", "-x"])
def test_after_a_switch_a_path_names_features(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v2").mkdir()
    assert testing.names_path([option, "v2"])


@pytest.mark.parametrize("command", [["test"], ["check"], ["ci", "--features"]], ids=" ".join)
def test_tests_of_a_folder_without_features_are_no_scenarios(
    output_of: OutputOf, tmp_path: Path, command: list[str]
) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_it.py").write_text("def test_it(): pass")
    done = output_of(*command, "tests")
    assert done.returncode == 1
    assert "no feature is below" in done.stdout + done.stderr
    assert "passed" not in done.stdout


def test_ci_reports_a_failure_to_github(output_of: OutputOf, tmp_path: Path) -> None:
    (tmp_path / "features").mkdir()
    (tmp_path / "features/f.feature").write_text(FEATURE)
    (tmp_path / "conftest.py").write_text(STEPS)
    github = {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(tmp_path)}
    github |= {name: str(tmp_path / name.lower()) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    done = output_of("ci", SCHEDSPEC_FEATURES="features", SCHEDSPEC_POLICY="", **github)
    assert done.returncode == 1, done.stderr
    assert "::error file=features/f.feature,line=5,title=bad::here" in done.stdout
    assert "schedspec: 1 of 2 scenarios failed; report: out/ci/report.html" in done.stdout
    assert (tmp_path / "github_output").read_text().startswith("verdict=failed\npassed=1\nfailed=1\n")
    records = [json.loads(path.read_bytes())["verdict"] for path in (tmp_path / "out/ci").glob("scenarios/*/*.json")]
    assert sorted(records) == ["failed", "passed"]  # the report is consistent with the results
    summary = (tmp_path / "github_step_summary").read_text()
    assert "1 of 2 scenarios failed" in summary
    assert "(in the report: <code>#features-f-4</code>) bad</summary>" in summary
    assert {"junit.xml", "durations.json", "report.html"} <= set(os.listdir(tmp_path / "out/ci"))
    assert (tmp_path / "github_output").read_text().endswith("report=out/ci\npage=out/ci/report.html\n")


@pytest.mark.parametrize(
    ("given", "variables", "message"),
    [
        (["--arguments", "-k 'one"], {}, "--arguments -k 'one: No closing quotation"),
        (["--features", 'a "b'], {}, '--features a "b: No closing quotation'),
        (
            [],
            {"GITHUB_STEP_SUMMARY": "no/folder/summary.md"},
            "$GITHUB_STEP_SUMMARY: no/folder/summary.md: No such file",
        ),
        ([], {"GITHUB_OUTPUT": "."}, "$GITHUB_OUTPUT: .: Is a directory"),
    ],
)
def test_ci_refuses_bad_input_before_it_runs(
    output_of: OutputOf, tmp_path: Path, given: list[str], variables: dict[str, str], message: str
) -> None:
    done = output_of("ci", *given, **variables)
    assert (done.returncode, "Traceback" in done.stderr, "do next: " in done.stderr) == (1, False, True), done.stderr
    assert message in done.stderr
    assert not (tmp_path / "out").exists()


def test_ci_joins_shards(output_of: OutputOf, tmp_path: Path) -> None:
    (tmp_path / "f.feature").write_text(FEATURE.replace("trouble", "nothing"))
    (tmp_path / "conftest.py").write_text(STEPS)
    for number in (1, 2):
        assert output_of("ci", "--shard", f"{number}/2", "--out", f"out/{number}").returncode == 0
    done = output_of("ci", "--join", "out", "--out", "joined")
    assert (done.returncode, "2 scenarios passed" in done.stdout) == (0, True)
    assert len(json.loads((tmp_path / "joined/durations.json").read_text())) == 2
    assert all(name in (tmp_path / "joined/report.html").read_text() for name in ("good", "bad"))
    assert "missing: 2" in output_of("ci", "--join", "out/1").stderr


@pytest.mark.parametrize("command", ["test", "check"])
def test_below_a_folder_of_ours_a_command_names_that_folder(output_of: OutputOf, tmp_path: Path, command: str) -> None:
    assert output_of("init").returncode == 0
    run = [sys.executable, "-P", "-m", "schedspec", command]
    done = subprocess.run(
        run, cwd=tmp_path / "steps", env=distribution.environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "name the folder of the features that are nearest: .." in done.stderr
