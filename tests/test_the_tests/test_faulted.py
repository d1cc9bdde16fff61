"""The tests of the tests: scenarios are read as they run, the right `When` is left out, and faults take effect."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from schedspec.scheduler.framework.tracing import no_trace
from schedspec.scheduler.framework.work import Budget
from schedspec.scheduler.live import loop
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.policy.loader import load_policy
from tests.support.core.random_tables import POLICIES
from tests.test_the_tests import faulted, specimens, without_when
from tests.test_the_tests.faults import FAULTS
from tests.test_the_tests.runs import ROOT, Lab, Result
from tests.test_the_tests.specimens import Specimen, Step

FEATURE = """
Feature: f
  Background:
    Given these queues:
      | queue |
      | q     |

  Rule: r
    @without-monitor-gang
    Scenario Outline: A job that <does>
      When "<job>" is submitted
      And "x" is submitted
      Then "<job>" <does>
      And nothing is evicted
      When "<job>" completes
      Then "<job>" goes through Pending, Completed

      Examples:
        | job | does |
        | a   | runs |
        | b   | waits |
"""


@pytest.fixture
def read(tmp_path: Path) -> list[Specimen]:
    (tmp_path / "room").mkdir()
    (tmp_path / "room/f.feature").write_text(FEATURE)
    return specimens.read(tmp_path)


def test_a_scenario_is_read_with_its_background_example_and_tags(read: list[Specimen]) -> None:
    first, second = read
    assert (first.title, second.title) == ("room/f: A job that runs", "room/f: A job that waits")
    assert first.tags == ("@without-monitor-gang",)
    assert first.steps[0] == Step("Given", "these queues:", ("| queue |", "| q |"))
    assert [it.keyword for it in first.steps] == ["Given", "When", "When", "Then", "Then", "When", "Then"]


def test_written_scenarios_are_read_unchanged(read: list[Specimen], tmp_path: Path) -> None:
    specimens.write(read, tmp_path / "again/f.feature")
    again = specimens.read(tmp_path / "again")
    assert [it.name for it in again] == ["000", "001"]
    assert [(it.steps, it.tags) for it in again] == [(it.steps, it.tags) for it in read]


def test_each_block_of_claims_is_run_without_its_own_whens(read: list[Specimen]) -> None:
    first, second = without_when.blocks(read[0])
    assert [it.text for it in first.without.steps] == ["these queues:", '"a" runs']
    assert [it.text for it in second.without.steps][-2:] == [
        "nothing is evicted",
        '"a" goes through Pending, Completed',
    ]
    assert [it.keyword for it in second.without_any.steps] == ["Given", "Then"]


@pytest.mark.parametrize(
    ("broken", "failure", "fails"),
    [
        ((1,), "x", True),
        ((0,), "x", False),
        ((), "", False),
        ((), 'the sentence: Then "a" runs', True),
        ((), "no cluster", False),
    ],
    ids=["the claim", "something before it", "nothing", "the claim, unrecorded", "the run"],
)
def test_only_the_claim_itself_may_fail(
    read: list[Specimen], broken: tuple[int, ...], failure: str, fails: bool
) -> None:
    block = next(iter(without_when.blocks(read[0])))
    result = Result(block.without, not failure, broken, (), failure)
    assert [it.fails for it in without_when._verdicts(block, result)] == [fails]


def test_an_undetected_fault_is_reported_and_fails_the_run(read: list[Specimen]) -> None:
    out = io.StringIO()
    assert not faulted.report({"no-reclaim": [Result(read[0], True, (), (), "")]}, read, out)
    assert "no-reclaim: nothing detects that the scheduler never reclaims" in out.getvalue()
    assert "room/f: A job that runs: nothing is evicted" in out.getvalue()


def test_a_detected_fault_is_listed_with_its_sentences_and_monitors(read: list[Specimen]) -> None:
    out = io.StringIO()
    assert faulted.report({"no-reclaim": [Result(read[0], False, (4,), ("node",), "x")]}, read, out)
    assert "1 sentences; monitors node" in out.getvalue()
    assert "room/f: A job that runs: nothing is evicted" in out.getvalue()


def test_a_scheduler_that_ends_does_not_count_as_detection_of_another_fault(read: list[Specimen]) -> None:
    out = io.StringIO()
    ended = [Result(read[0], False, (4,), (), "the scheduler ended with exit code 1; nothing is scheduled any more")]
    assert not faulted.report({"no-reclaim": ended}, read, out)
    assert "no-reclaim: room/f: A job that runs detected only that the scheduler has ended" in out.getvalue()
    assert faulted.report({"dies": ended}, read, out)


def test_a_scenario_that_did_not_begin_does_not_count_as_detection(read: list[Specimen]) -> None:
    out = io.StringIO()
    assert not faulted.report({"no-reclaim": [Result(read[0], False, (), (), "not ready in time")]}, read, out)
    assert "no-reclaim: nothing detects that the scheduler never reclaims" in out.getvalue()
    assert "room/f: A job that runs failed, but no sentence and no monitor reports it" in out.getvalue()
    assert faulted.report({"dies": [Result(read[0], False, (), (), "the scheduler ended")]}, read, out)


@pytest.mark.parametrize(
    ("other", "passes"),
    [
        (lambda it: Result(it, False, (3,), (), "x"), False),
        (lambda it: Result(it, False, (4,), (), "x"), True),
        (lambda it: Result(it, True, (), (), "", skipped=True), True),
    ],
    ids=["unbroken", "broken", "skipped"],
)
def test_if_all_faults_ran_each_forbidding_sentence_must_be_broken(
    monkeypatch: pytest.MonkeyPatch, read: list[Specimen], other: Callable[[Specimen], Result], passes: bool
) -> None:
    caught = {"no-reclaim": [Result(read[0], False, (4,), (), "x"), other(read[1])]}
    assert faulted.report(caught, read, io.StringIO())
    monkeypatch.setattr(faulted, "FAULTS", {"no-reclaim": FAULTS["no-reclaim"]})
    assert faulted.report(caught, read, io.StringIO()) == passes


def test_a_simulated_fault_does_not_affect_the_next_run(tmp_path: Path) -> None:
    """The scenario fails with the fault, and passes in the next run without a fault."""
    name = "lifecycle/states: A pod without"
    scenarios = [it for it in specimens.read(ROOT / "features") if name in it.title and not it.source.endswith(".zh")]
    lab = Lab(tmp_path, 1, "0.5")
    seen = faulted.run_all(lab, scenarios, ["no-backfill"])
    assert [it.passed for it in seen["no-backfill"]] == [False]
    assert seen["no-backfill"][0].broken
    assert [it.passed for it in lab.run("sound", scenarios)] == [True]
    assert {it.name for it in tmp_path.iterdir()} == {"faults-no-backfill-0", "sound-none-0"}


def test_only_faults_of_the_process_need_an_embedded_cluster() -> None:
    assert [name for name, fault in FAULTS.items() if fault.of_process] == ["dies"]


def test_every_fault_may_be_detected_by_a_scenario() -> None:
    scenarios = specimens.read(ROOT / "features")
    assert [name for name, fault in FAULTS.items() if not any(map(fault.may_be_detected_by, scenarios))] == []


def test_every_scenario_that_a_fault_names_exists() -> None:
    titles = [it.title for it in specimens.read(ROOT / "features")]
    named = {part for fault in FAULTS.values() for part in fault.where if "/" in part}
    assert [part for part in sorted(named) if not any(part in title for title in titles)] == []


def test_every_fault_can_be_injected_into_the_current_product() -> None:
    """Inject each fault in a forked process, because an injection is never undone. A cycle runs as in the loop."""
    policy = load_policy(POLICIES["capacity"], "test")
    for name, fault in FAULTS.items():
        if (child := os.fork()) == 0:
            try:
                fault.inject()
                loop.decide(Cluster(), policy, 0.0, no_trace, budget=Budget(1000))
            except BaseException:  # noqa: BLE001 - reported by the exit status
                os._exit(1)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0, f"{name} cannot be injected"


def test_an_unknown_fault_is_refused_with_a_list_of_the_known_faults() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.test_the_tests.faulty", "tired", "run"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "no-reclaim" in done.stderr
