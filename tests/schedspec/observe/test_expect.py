"""Expectations on a history that grows while they wait: results and texts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from schedspec.api.errors import HarnessError, Unmet
from schedspec.api.kinds import Kind, Ref
from schedspec.observe import queries
from schedspec.observe.expect import Expect, Outcome
from schedspec.observe.history import History, View

POD = Ref(Kind.POD, "train-0", "ns")


def pod(phase: str, version: int = 1) -> dict[str, object]:
    return {
        "metadata": {"name": "train-0", "namespace": "ns", "uid": "u1", "resourceVersion": str(version)},
        "spec": {},
        "status": {"phase": phase},
    }


def is_in(phase: str) -> Callable[[View], Outcome]:
    def check(view: View) -> Outcome:
        found = view.get(Kind.POD, "train-0")
        seen = found["status"]["phase"] if found else "no pod"
        return Outcome(seen == phase, f"train-0 is {phase}", seen, (POD,))

    return check


@pytest.fixture
def history() -> History:
    return History("ns", {POD: pod("Pending")})


@contextmanager
def meanwhile(*acts: Callable[[], None]) -> Iterator[None]:
    """Do these acts in another thread, as the watches do."""

    def work() -> None:
        for act in acts:
            time.sleep(0.03)
            act()

    thread = threading.Thread(target=work)
    thread.start()
    yield
    thread.join()


def test_a_condition_that_holds_already_needs_no_wait(history: History) -> None:
    Expect(history).eventually(is_in("Pending"), within=0)


def test_a_condition_that_holds_later_is_awaited(history: History) -> None:
    with meanwhile(lambda: history.record(POD, "changed", pod("Running"))):
        Expect(history).eventually(is_in("Running"), within=5)


def test_a_state_that_is_replaced_immediately_is_checked(history: History) -> None:
    def blink() -> None:
        history.record(POD, "changed", pod("Running"))
        history.record(POD, "changed", pod("Pending"))

    with meanwhile(blink):
        Expect(history).eventually(is_in("Running"), within=5)


def test_a_new_version_wakes_a_wait(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("schedspec.observe.expect.WAKE", 60.0)
    with meanwhile(lambda: history.record(POD, "changed", pod("Running"))):
        Expect(history).eventually(is_in("Running"), within=90)


def test_the_error_of_a_timeout_contains_what_was_expected_and_seen(history: History) -> None:
    with pytest.raises(Unmet) as raised:
        Expect(history).eventually(is_in("Running"), within=0.05)
    assert str(raised.value) == "expected: train-0 is Running (within 0.05 s)\n    seen: Pending"
    assert raised.value.about == (POD,)


def test_the_error_of_a_timeout_is_never_empty(history: History) -> None:
    with pytest.raises(Unmet, match="seen: nothing at all"):
        Expect(history).eventually(lambda _: Outcome(False, "anything", ""), within=0.01)


def test_durations_are_scaled(history: History) -> None:
    with pytest.raises(Unmet, match=r"within 0\.1 s"):
        Expect(history, scale=10).eventually(is_in("Running"), within=0.01)


def test_consistently_passes_where_nothing_changes(history: History) -> None:
    Expect(history).consistently(is_in("Pending"), during=0.05)


def test_consistently_fails_at_once_if_the_condition_does_not_hold(history: History) -> None:
    with pytest.raises(Unmet, match="for 60 s; broken after 0"):
        Expect(history).consistently(is_in("Running"), during=60)


def test_consistently_fails_on_a_state_that_is_replaced_immediately(history: History) -> None:
    def blink() -> None:
        history.record(POD, "changed", pod("Running"))
        history.record(POD, "changed", pod("Pending"))

    with meanwhile(blink), pytest.raises(Unmet, match="seen: Running"):
        Expect(history).consistently(is_in("Pending"), during=60)


def hopeless(after: float) -> Callable[[View], Outcome]:
    return lambda _: Outcome(False, "a miracle", "none", (POD,), hopeless=after)


@pytest.mark.parametrize("wait", ["eventually", "settles"])
def test_a_wait_without_hope_fails_at_once(history: History, wait: str) -> None:
    expect = Expect(history)
    began = time.monotonic()
    with pytest.raises(Unmet, match=r"expected: a miracle \(failed at once\)") as raised:
        expect.eventually(hopeless(0), within=600) if wait == "eventually" else expect.settles(
            hopeless(0), within=600, during=1
        )
    assert time.monotonic() - began < 60
    assert raised.value.about == (POD,)


def test_the_error_names_the_irreversible_fact_for_which_the_wait_failed_at_once(history: History) -> None:
    check = queries.evicted_count(0)
    for name in ("a", "b"):
        meta = {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "1"}
        mark = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "preempted"}
        marked = {"metadata": meta, "spec": {}, "status": {"phase": "Running", "conditions": [mark]}}
        history.record(Ref(Kind.POD, name, "ns"), "added", marked)
    with pytest.raises(
        Unmet, match=r"exactly 0 evictions \(failed at once: 2 evictions already\)\n.*2 evictions: a, b"
    ):
        Expect(history).eventually(check, within=600)


def test_an_outcome_that_is_hopeless_for_too_long_ends_the_wait(history: History) -> None:
    with pytest.raises(Unmet, match=r"given up after (0\.[1-9]|[1-9])"):
        Expect(history, scale=2).eventually(hopeless(0.05), within=600)


def test_another_outcome_in_between_resets_the_time_without_hope(history: History) -> None:
    """The outcome is hopeless while the pod is Pending, but never for 0.3 s without another phase in between."""

    def check(view: View) -> Outcome:
        outcome = is_in("Running")(view)
        return replace(outcome, hopeless=0.3) if outcome.seen == "Pending" else outcome

    phases = ["Unknown", "Pending"] * 10
    acts = [lambda phase=phase: history.record(POD, "changed", pod(phase)) for phase in (*phases, "Running")]
    with meanwhile(*acts):
        Expect(history).eventually(check, within=60)


def test_never_fails_on_the_first_state_in_which_the_condition_holds(history: History) -> None:
    with (
        meanwhile(lambda: history.record(POD, "changed", pod("Running"))),
        pytest.raises(Unmet, match="expected: never: train-0 is Running"),
    ):
        Expect(history).never(is_in("Running"), during=60)


def test_never_checks_only_states_from_now_on(history: History) -> None:
    history.record(POD, "changed", pod("Running"))
    history.record(POD, "changed", pod("Failed"))
    Expect(history).never(is_in("Running"), during=0.05)


def test_the_error_of_a_guard_ends_the_wait(history: History) -> None:
    def dead() -> None:
        raise HarnessError("the scheduler is dead")

    with pytest.raises(HarnessError, match="dead"):
        Expect(history, guards=[dead]).eventually(is_in("Running"), within=60)


def test_a_deleted_pod_is_not_in_the_view(history: History) -> None:
    history.record(POD, "gone", pod("Running"))
    Expect(history).now(is_in("no pod"))


def test_now_does_not_wait(history: History) -> None:
    with pytest.raises(Unmet, match="expected: train-0 is Running\n"):
        Expect(history).now(is_in("Running"))
