"""A feature file is collected unchanged; its errors are reported with file and line before any scenario runs."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable

import pytest

from schedspec.gherkin import short_names

Run = Callable[..., pytest.RunResult]

GOOD = """\
Feature: Pods
  Background:
    Given there are 2 pods

  Rule: They are fine
    @smoke
    Scenario: Nothing comes of nothing
      When nothing happens
      Then all is well

    Scenario Outline: There are <n> of them
      Given there are <n> pods
      Then all is well

      Examples:
        | n |
        | 3 |
        | 4 |
"""


def test_a_feature_file_is_a_test_module(specs: Run) -> None:
    result = specs(pods=GOOD)
    result.assert_outcomes(passed=3)


def test_items_are_named_after_their_scenarios(specs: Run) -> None:
    result = specs("--collect-only", "-q", pods=GOOD)
    result.stdout.fnmatch_lines(
        [
            "pods.feature::They are fine::Nothing comes of nothing",
            "pods.feature::They are fine::There are 3 of them",
            "pods.feature::They are fine::There are 4 of them",
        ]
    )


@pytest.mark.parametrize(
    ("arguments", "passed"),
    [
        (["-k", "nothing"], 1),
        (["-m", "smoke"], 1),
        (["-k", "fine and 4"], 1),
        (["pods.feature::They are fine::There are 4 of them"], 1),
        (["pods.feature::They are fine"], 3),
        (["pods.feature"], 3),
        (["-k", "absent"], 0),
    ],
)
def test_pytests_selection_options_work_on_features(specs: Run, arguments: list[str], passed: int) -> None:
    result = specs(*arguments, pods=GOOD)
    result.assert_outcomes(passed=passed, deselected=3 - passed if arguments[0].startswith("-") else 0)


@pytest.mark.parametrize(
    ("selection", "found"),
    [
        (":8", ["Nothing comes of nothing"]),  # a step, as a failure prints it
        (":6", ["Nothing comes of nothing"]),  # its tag
        ("::7", ["Nothing comes of nothing"]),
        (":8:3", ["Nothing comes of nothing"]),  # with a column, as editors write it
        (":12", ["There are 3 of them", "There are 4 of them"]),
        (":18", ["There are 4 of them"]),  # a row of the examples
        (":5", ["Nothing comes of nothing", "There are 3 of them", "There are 4 of them"]),  # the Rule
        (":3", ["Nothing comes of nothing", "There are 3 of them", "There are 4 of them"]),  # the Background
        ("::Nothing comes of nothing", ["Nothing comes of nothing"]),  # without its Rule
        ("::There are <n> of them", ["There are 3 of them", "There are 4 of them"]),
        ("::There are 4 of them", ["There are 4 of them"]),
    ],
)
def test_a_line_or_a_plain_name_selects_scenarios(specs: Run, selection: str, found: list[str]) -> None:
    result = specs(f"pods.feature{selection}", "--collect-only", "-q", pods=GOOD)
    assert [line.rpartition("::")[2] for line in result.outlines if line.startswith("pods.feature::")] == found


def test_a_line_in_a_missing_file_is_refused(specs: Run) -> None:
    result = specs("pod.feature:8", pods=GOOD)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: there is no file pod.feature (looked for in *"])


def test_the_name_of_a_row_contains_its_values_if_the_outline_has_no_placeholder(specs: Run) -> None:
    feature = GOOD.replace("There are <n> of them", "Some")
    result = specs("--collect-only", "-q", pods=feature)
    result.stdout.fnmatch_lines(["pods.feature::They are fine::Some[[]3]", "pods.feature::They are fine::Some[[]4]"])
    specs("pods.feature::They are fine::Some[4]", pods=feature).assert_outcomes(passed=1)


def test_features_run_on_workers_of_xdist(specs: Run) -> None:
    result = specs("-n", "2", pods=GOOD)
    result.assert_outcomes(passed=3)


def test_junit_names_the_scenario(specs: Run, pytester: pytest.Pytester) -> None:
    specs("--junitxml", "junit.xml", pods=GOOD)
    cases = ElementTree.parse(pytester.path / "junit.xml").getroot().iter("testcase")
    assert next(cases).get("name") == "Nothing comes of nothing"


def test_the_option_lf_repeats_a_failed_scenario(pytester: pytest.Pytester, specs: Run) -> None:
    feature = GOOD.replace("Then all is well", "Then all is lost", 1)
    specs(pods=feature, steps="")
    arguments = ("-p", "schedspec.plugin", "--lf")
    pytester.runpytest_inprocess("-p", "schedspec.plugin").assert_outcomes(passed=2, failed=1)
    pytester.runpytest_inprocess(*arguments).assert_outcomes(failed=1)


def test_a_defect_of_a_step_keeps_its_traceback_and_names_the_sentence(specs: Run) -> None:
    result = specs(pods="Feature: f\n  Scenario: s\n    When nothing happens\n    Then all is lost\n")
    result.stdout.fnmatch_lines(["*assert (1 + 1) == 3", "*in the sentence: Then all is lost", "*at pods.feature:4"])


def test_items_have_the_line_of_their_scenario(pytester: pytest.Pytester, specs: Run) -> None:
    specs(pods=GOOD)
    items, _ = pytester.inline_genitems("-p", "schedspec.plugin", str(pytester.path / "pods.feature"))
    assert [item.location[1] for item in items] == [6, 10, 10]  # counted from 0; the line of the tag does not count


WRONG = {
    "an undefined step": (
        "Feature: f\n  Scenario: s\n    Given there are 2 pods\n    Then all is wel\n",
        ["bad.feature:4: no step matches: Then all is wel", "*the nearest is: then all is well"],
    ),
    "an undefined step of an example": (
        "Feature: f\n  Scenario Outline: s\n    Given there are <n> pods\n    Examples:\n      | n |\n      | x |\n",
        ["bad.feature:3: no step matches: Given there are x pods (with n=x, of line 6)*"],
    ),
    "an undefined step of a background": (
        "Feature: f\n  Background:\n    Given a moon\n  Scenario: s\n    Then all is well\n",
        ["bad.feature:3: no step matches: Given a moon"],
    ),
    "a step of another kind": (
        "Feature: f\n  Scenario: s\n    Given all is well\n",
        ["bad.feature:3: this is a Then sentence, under Given: Given all is well"],
    ),
    "a repeated name": (
        "Feature: f\n  Scenario: s\n    Then all is well\n  Rule: r\n    Scenario: s\n      Then all is well\n",
        ["bad.feature:5: the name 's' is taken by the scenario in line 2"],
    ),
    "a name that cannot be selected": (
        "Feature: f\n  Scenario: a::b\n    Then all is well\n",
        ["bad.feature:2: a scenario's name must not contain '::'*'a::b'"],
    ),
    "a rule without a name, and one that cannot be selected": (
        "Feature: f\n  Rule:\n    Scenario: s\n      Then all is well\n  Rule: a::b\n",
        ["bad.feature:2: a rule needs a name", "bad.feature:5: a rule's name must not contain '::'*'a::b'"],
    ),
    "a repeated rule": (
        "Feature: f\n  Rule: r\n    Scenario: s\n      Then all is well\n  Rule: r\n",
        ["bad.feature:5: the name 'r' is taken by the rule in line 2"],
    ),
    "a scenario without a name": (
        "Feature: f\n  Scenario:\n    Then all is well\n",
        ["bad.feature:2: a scenario needs a name"],
    ),
    "an unknown tag": (
        "@smok\nFeature: f\n  Scenario: s\n    Then all is well\n",
        ["bad.feature:1: unknown tag @smok; is @smoke meant?*"],
    ),
    "an unknown tag of a rule and of examples": (
        """Feature: f
  @one
  Rule: r
    Scenario Outline: s
      Then all is well
      @two
      Examples:
        | n |
        | 1 |
""",
        ["bad.feature:2: unknown tag @one*", "bad.feature:6: unknown tag @two*"],
    ),
    "an outline without rows": (
        "Feature: f\n  Scenario Outline: s\n    Given there are <n> pods\n    Examples:\n      | n |\n",
        ["bad.feature:2: the outline 's' has no row of examples: it would not run"],
    ),
    "a repeated example": (
        """Feature: f
  Scenario Outline: s
    Given there are <n> pods
    Examples:
      | n |
      | 1 |
      | 1 |
""",
        ["bad.feature:7: line 6 has the same example"],
    ),
    "two columns of examples with one name": (
        """Feature: f
  Scenario Outline: s
    Given there are <n> pods
    Then all is well
    Examples:
      | n | n |
      | 1 | 2 |
""",
        ["bad.feature:6: 2 columns are called n: only the last one would be read"],
    ),
    "a placeholder without examples": (
        "Feature: f\n  Scenario: s\n    Given there are <n> pods\n    Then all is well\n",
        ["bad.feature:3: <n> has no value: no table Examples: has a column n"],
    ),
    "a placeholder that one of two tables of examples lacks": (
        """Feature: f
  Scenario Outline: s
    Given there are <n> pods
    Then all is <m>
    Examples:
      | n | m    |
      | 1 | well |
    Examples:
      | n |
      | 2 |
""",
        ["bad.feature:4: <m> has no value: no table Examples: has a column m"],
    ),
    "a rule without a scenario": (
        "Feature: f\n  Scenario: s\n    Then all is well\n  Rule: r\n    Background:\n      Given there are 2 pods\n",
        ["bad.feature:4: the rule 'r' has no scenario: write one, or remove the rule"],
    ),
    **{
        f"the marker {name} as a tag": (
            f"Feature: f\n  @{name}\n  Scenario: s\n    Then all is well\n",
            [f"bad.feature:2: unknown tag @{name}*"],
        )
        for name in ("filterwarnings", "parametrize", "skipif", "tryfirst", "trylast", "usefixtures")
    },
    "a feature without scenarios": ("Feature: f\n", ["bad.feature:1: the feature has no scenario"]),
    "an empty file": ("", ["bad.feature:1: there is no Feature in this file"]),
    "no Gherkin": ("hello\n", ["bad.feature:1: *"]),
    "Chinese without its language": (
        "# ours\n\n功能：借\n  场景: 还\n    那么没有 Pod 被驱逐\n",
        ["bad.feature:3: 功能 is of zh-CN: begin the file with '# language: zh-CN': *"],
    ),
    "a misspelt language": (
        "# language: zh_CN\n功能: 借\n  场景: 还\n    那么没有 Pod 被驱逐\n",
        ["bad.feature:1: there is no language 'zh_CN': write # language: zh-CN: *"],
    ),
    "another language": (
        "Funktion: leihen\n",
        ["bad.feature:1: Funktion is of de: begin the file with '# language: de'*"],
    ),
}


@pytest.mark.parametrize(("feature", "lines"), WRONG.values(), ids=WRONG)
def test_a_mistake_is_an_error_of_the_collection(specs: Run, feature: str, lines: list[str]) -> None:
    result = specs(bad=feature)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(lines)
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*harness/*.py*")


def test_all_mistakes_are_reported_at_once(specs: Run) -> None:
    result = specs(bad="Feature: f\n  Scenario: s\n    Given one\n    Then two\n")
    result.stdout.fnmatch_lines(["bad.feature:3: *one", "bad.feature:4: *two"])


def test_a_syntax_error_hides_no_other_mistake(specs: Run) -> None:
    """Lines without a keyword are reported with the probable keyword; the rest of the file is still checked."""
    feature = """Feature: f
  Scenario: s
    Given there are 2 pods
    Thn all is well
  Scenaro: t
    Given there are 2 pds
      | a | b |
      | c |
    oops
  Scenario: u
    Then all is wel
"""
    result = specs(bad=feature)
    assert [line for line in result.outlines if line.startswith(("bad.feature:", "    "))] == [
        "bad.feature:4: no keyword begins this line: Thn all is well",
        "    is Then meant?",
        "bad.feature:5: no keyword begins this line: Scenaro: t",
        "    is Scenario: meant?",
        "bad.feature:5: the scenario 't' has no Then, so that it asserts nothing: say what must come, or what must not",
        "bad.feature:6: no step matches: Given there are 2 pds",
        "    the nearest is: given there are {n:d} pods",
        "bad.feature:8: inconsistent cell count within the table: | c |",
        "bad.feature:9: no keyword begins this line: oops",
        "bad.feature:11: no step matches: Then all is wel",
        "    the nearest is: then all is well",
    ]


@pytest.mark.parametrize(
    ("feature", "lines"),
    [
        ("Featur: f\n  Scenario: s\n    Then all is well\n", ["bad.feature:1: *Featur: f", "    is Feature: meant?"]),
        ("# language: xx\nFeature: f\n", ["bad.feature:1: there is no language 'xx'*"]),
        ("Feature: f\n  Scenario: s\n    Given x\n      " + '"' * 3, ["bad.feature:*: unexpected end *"]),
        (
            "# language: zh-CN\n功能: f\n  场景: s\n    那么好\n  场景大刚: t\n",
            ["bad.feature:5: *", "    is 场景大纲: meant?"],
        ),
    ],
    ids=["a misspelt Feature", "an unknown language", "a text block without an end", "a misspelt Chinese heading"],
)
def test_a_syntax_error_has_a_hint(specs: Run, feature: str, lines: list[str]) -> None:
    result = specs(bad=feature)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(lines)
    result.stdout.no_fnmatch_line("*Traceback*")


def test_the_error_for_two_matching_steps_names_both(specs: Run) -> None:
    steps = "\n@then(parsers.parse('all is {what}'))\ndef other(what):\n    '''Anything.'''\n"
    result = specs(bad="Feature: f\n  Scenario: s\n    Then all is well\n", steps=steps)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["bad.feature:3: 2 steps match: Then all is well", "*'all is well' at conftest.py:*", "*'all is {what}' at *"]
    )


def test_an_async_step_is_an_error_and_never_passes(specs: Run) -> None:
    steps = "\n@then('it is awaited')\nasync def awaited():\n    '''Never.'''\n"
    result = specs(bad="Feature: f\n  Scenario: s\n    Then it is awaited\n", steps=steps)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["bad.feature:3: the step is `async def`, which would never be awaited*"])


def test_our_own_decorators_refuse_an_async_step_at_import(specs: Run) -> None:
    steps = "\n@own_given('it is awaited')\nasync def awaited():\n    '''Never.'''\n"
    result = specs(pods=GOOD, steps=steps)
    assert "is `async def`" in result.stderr.str() + result.stdout.str()
    assert result.ret != 0


def test_a_parameter_in_quotes_ends_at_the_quote(specs: Run) -> None:
    steps = "\n@own_given('\"{a}\" runs')\ndef one(a):\n    '''One.'''\n    assert a == 'x'\n"
    assert specs(good='Feature: f\n  Scenario: s\n    Given "x" runs\n    Then all is well\n', steps=steps).ret == 0
    result = specs(good='Feature: f\n  Scenario: s\n    Given "x" and "y" runs\n    Then all is well\n', steps=steps)
    result.stdout.fnmatch_lines(['good.feature:3: no step matches: Given "x" and "y" runs*'])


OWN = '''
from schedspec.gherkin import tables
from schedspec.gherkin.step_decorators import makes, refers, table
from schedspec.gherkin.step_decorators import given as own_given, then as own_then
from schedspec.gherkin.things import WORKLOAD

@own_given("somebody else submits work")
def somebody():
    """The step declares no work."""

@own_given("the nightly work")
@makes(lambda values, rows: [(WORKLOAD, "nightly")])
def nightly():
    """The step declares its work."""

@own_given("a list:")
def listed(datatable):
    """A table without a header."""

@own_given("perhaps a list:")
def perhaps(datatable=None):
    """A table, or none."""

@own_given("colours:")
@table(tables.Shape({"colour": ("colour", tables.word), "share": ("share", tables.count)}, ("colour",)))
def colours(datatable):
    """A declared table."""

@own_then('"{name}" is known')
@refers(name=WORKLOAD)
def known(name):
    """The step declares that the placeholder is a name."""

@own_then('"{name}" is anything')
def anything(name):
    """The step declares nothing."""
'''


@pytest.mark.parametrize(
    ("steps", "messages"),
    [
        ('Then "x" is anything', []),
        ('Then "x" is known', ["bad.feature:3: no earlier sentence creates a workload 'x'; there are: none"]),
        ('Given somebody else submits work\n    Then "x" is known\n    And "x" runs', []),
        ('Given the nightly work\n    Then "nightly" is known\n    And "nightly" runs', []),
        (
            'Given the nightly work\n    Then "nihgtly" runs',
            ["bad.feature:4: no earlier sentence creates a workload 'nihgtly' (is 'nightly' meant?)*"],
        ),
        ("Given a list:\n      | a |", []),
        ("Given a list:\n      | a |\n      | a |", []),
        ("Given a list:", ["bad.feature:3: this sentence needs a table below it: Given a list:"]),
        ("Given perhaps a list:\n    And perhaps a list:\n      | a |", []),
        ('Then "x" is anything\n      | a |', ["bad.feature:4: this sentence takes no table, and would ignore it: *"]),
        (
            "Given colours:\n      | colour | shade |\n      | red | 1 |\n      | red | 1 |",
            [
                "bad.feature:4: unknown column 'shade' (is 'share' meant?); this table takes: colour, share",
                "bad.feature:6: line 5 has the same row",
            ],
        ),
    ],
)
def test_own_sentences_are_checked_by_their_declarations(specs: Run, steps: str, messages: list[str]) -> None:
    then = "" if "Then" in steps else '    Then "x" is anything\n'
    result = specs("--collect-only", "-q", bad=f"Feature: f\n  Scenario: s\n    {steps}\n{then}", steps=OWN)
    assert result.ret == (pytest.ExitCode.INTERRUPTED if messages else pytest.ExitCode.OK)
    assert len([line for line in result.outlines if line.startswith("bad.feature:") and "::" not in line]) == len(
        messages
    )
    result.stdout.fnmatch_lines(messages)


@pytest.mark.parametrize(
    ("policies", "options", "messages"),
    [
        ({}, [], ["bad.feature:3: there is no policy 'mien'; there are: *capacity, *"]),
        (
            {"mein": "actions: allocate\n"},
            [],
            ["bad.feature:3: there is no policy 'mien' (is 'mein' meant?); there are: *"],
        ),
        (
            {"mien": "actions: allocat\ntiers: []\n"},
            [],
            ["bad.feature:3: the scheduler rejects the policy 'mien':", "    mien.yaml:1: actions: *"],
        ),
        ({"mien": "actions: allocat\ntiers: []\n"}, ["--scheduler", "volcano"], []),  # not judged by our lint
    ],
)
def test_the_collection_finds_policies_in_the_same_folders_as_the_run(
    specs: Run, pytester: pytest.Pytester, policies: dict[str, str], options: list[str], messages: list[str]
) -> None:
    for name, text in policies.items():
        pytester.mkdir("policies").joinpath(f"{name}.yaml").write_text(text)
    feature = 'Feature: f\n  Scenario: s\n    Given the policy "mien"\n    Then queue "default" is Open\n'
    result = specs("--collect-only", "-q", *options, bad=feature)
    assert result.ret == (pytest.ExitCode.INTERRUPTED if messages else pytest.ExitCode.OK)
    result.stdout.fnmatch_lines(messages)


@pytest.mark.parametrize("name", ["a.featrue", "a.FEATURE", "a.features", "a.Feature", "a.feture"])
def test_a_misspelt_name_in_a_folder_of_features_is_an_error(specs: Run, pytester: pytest.Pytester, name: str) -> None:
    pytester.path.joinpath(name).write_text(GOOD)
    result = specs(pods=GOOD)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [f"*{name}:1: the name of a feature ends with .feature, in lower case: rename the file"]
    )


@pytest.mark.parametrize("folder", [".", "below"])
@pytest.mark.parametrize(("target", "is_read"), [("nowhere.feature", False), ("pods.feature", True)])
def test_a_link_to_a_missing_feature_is_refused(
    specs: Run, pytester: pytest.Pytester, folder: str, target: str, is_read: bool
) -> None:
    (pytester.path / folder).mkdir(exist_ok=True)
    (pytester.path / folder / "link.feature").symlink_to(pytester.path / target)
    result = specs(pods=GOOD)
    if is_read:
        result.assert_outcomes(passed=6)
    else:
        result.assert_outcomes(errors=1)
        result.stdout.fnmatch_lines(["*link.feature:1: the link leads nowhere", "*correct it, or remove it"])


@pytest.mark.parametrize(("target", "is_refused"), [(".", True), ("..", True), ("more", False)])
def test_a_link_to_a_folder_above_it_is_refused(
    specs: Run, pytester: pytest.Pytester, target: str, is_refused: bool
) -> None:
    """pytest follows a circle of links some 40 times, and would run each scenario as often."""
    for folder in ("below", "below/more"):
        (pytester.path / folder).mkdir()
    (pytester.path / "below" / "again").symlink_to(target)
    result = specs("below", **{"below/more/pods": GOOD})
    result.assert_outcomes(**({"errors": 1} if is_refused else {"passed": 6}))
    if is_refused:
        result.stdout.fnmatch_lines(["*below/again:1: the link leads to a folder above it", "*remove it"])


LEFT_OUT = [(name, name, "") for name in ("build", "dist", "node_modules", "venv", "x.egg")]


@pytest.mark.parametrize(("name", "refused", "setting"), [*LEFT_OUT, ("build", "", "dist"), (".old", "", "")])
def test_a_folder_of_features_that_pytest_leaves_out_is_named(
    specs: Run, pytester: pytest.Pytester, name: str, refused: str, setting: str
) -> None:
    pytester.path.joinpath(name).mkdir()
    pytester.path.joinpath(name, "more.feature").write_text(GOOD)
    given = (f"--override-ini=norecursedirs={setting}",) if setting else ()
    result = specs(*given, pods=GOOD)
    if refused:
        result.assert_outcomes(errors=1)
        result.stdout.fnmatch_lines([f"*{refused}: pytest leaves out folders of this name, and it has features"])
    else:
        result.assert_outcomes(passed=3 if name.startswith(".") else 6)


@pytest.mark.parametrize("name", ["a.feature~", "a.feature.bak", "a.future.md", "a.yaml", ".a.feature.swp"])
def test_other_files_beside_features_are_not_read(specs: Run, pytester: pytest.Pytester, name: str) -> None:
    pytester.path.joinpath(name).write_text(GOOD)
    specs(pods=GOOD).assert_outcomes(passed=3)


@pytest.mark.parametrize("name", [*short_names.NAMES, *short_names.OF_OUR_STEPS])
def test_a_fixture_that_would_replace_one_of_ours_is_refused(specs: Run, name: str) -> None:
    fixture = f"\nimport pytest\n\n@pytest.fixture\ndef schedspec_{name}():\n    return None\n"
    result = specs(steps=fixture, pods=GOOD)
    result.assert_outcomes(errors=1)
    text = f"conftest.py:*: the fixture 'schedspec_{name}' would replace schedspec's, and every sentence would use it"
    result.stdout.fnmatch_lines([text, f"*it may request 'schedspec_{name}'"])


@pytest.mark.parametrize("name", short_names.NAMES)
def test_a_fixture_may_request_one_of_ours(specs: Run, name: str) -> None:
    fixture = f"\nimport pytest\n\n@pytest.fixture\ndef my_{name}(schedspec_{name}):\n    return schedspec_{name}\n"
    specs(steps=fixture, pods=GOOD).assert_outcomes(passed=3)
