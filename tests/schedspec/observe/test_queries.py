"""Queries return past events of pods, and their checks fail at once if the past already violates them."""

from __future__ import annotations

from typing import Any

import pytest

from schedspec.api.kinds import Kind, Ref
from schedspec.observe import queries
from schedspec.observe.expect import Check
from schedspec.observe.history import History, View


def show(history: History, name: str, *, uid: str = "", evicted: bool = False, **status: Any) -> None:
    node = status.pop("node", "")
    if evicted:
        status["conditions"] = [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]
    pod = {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": uid or name,
            "labels": {"volcano.sh/job-name": name.partition("-")[0]},
        },
        "spec": {"nodeName": node} if node else {},
        "status": status,
    }
    history.record(Ref(Kind.POD, name, "ns"), "changed", pod)


@pytest.fixture
def view() -> View:
    """Return a view: a and b start; b's pod is evicted and starts again under the same name; c is evicted."""
    history = History("ns")
    show(history, "a-0", node="n1", phase="Running")
    show(history, "b-0", node="n1", phase="Running")
    show(history, "b-0", node="n1", phase="Running", evicted=True)
    show(history, "b-0", node="n1", phase="Running", evicted=True)
    show(history, "b-0", uid="again", phase="Pending")
    show(history, "b-0", uid="again", node="n1", phase="Running")
    show(history, "c-0", node="n1", phase="Pending")
    show(history, "c-0", node="n1", phase="Pending", evicted=True)
    return history.now()


HOPELESS = {
    "the expected pods": (queries.evicted_exactly(["b-0", "c-0"]), False),
    "one expected pod is not evicted yet": (queries.evicted_exactly(["b-0", "c-0", "d-0"]), False),
    "an unexpected pod": (queries.evicted_exactly(["b-0", "d-0"]), True),
    "an eviction where none is expected": (queries.evicted_exactly([]), True),
    "fewer than expected": (queries.evicted_count(3), False),
    "more than expected": (queries.evicted_count(1), True),
    "before the other": (queries.evicted_before("b", ["c"]), False),
    "neither is evicted yet": (queries.evicted_before("a", ["d"]), False),
    "after the other": (queries.evicted_before("a", ["c"]), True),
    "the last has not started": (queries.start_in_order(["a", "b", "d"]), False),
    "the wrong order": (queries.start_in_order(["b", "a"]), True),
    "the first has not started": (queries.start_in_order(["d", "a"]), True),
}


@pytest.mark.parametrize(("check", "hopeless"), HOPELESS.values(), ids=HOPELESS)
def test_a_violated_condition_on_the_past_is_hopeless(view: View, check: Check, hopeless: bool) -> None:
    assert check(view).hopeless == (0.0 if hopeless else None)


def test_a_second_eviction_of_a_pod_name_violates_both_conditions(view: View) -> None:
    show(view.history, "b-0", uid="again", node="n1", phase="Running", evicted=True)
    now = view.history.now()
    assert queries.evicted_exactly(["b-0", "c-0"])(now).hopeless == 0.0
    assert queries.evicted_count(3)(now).hopeless == 0.0


def test_too_many_affected_workloads_are_hopeless() -> None:
    assert queries.exactly_of(1, ["a", "b"], "lose a pod", [True, True]).hopeless == 0.0
    assert queries.exactly_of(1, ["a", "b"], "lose a pod", [False, False]).hopeless is None


def pods(happened: list[queries.Happened]) -> list[str]:
    return [it.pod for it in happened]


def test_an_eviction_is_counted_once_per_pod_however_many_versions_show_it(view: View) -> None:
    assert pods(queries.evictions(view)) == ["b-0", "c-0"]


def test_the_start_of_a_successor_is_counted_again(view: View) -> None:
    assert pods(queries.starts(view)) == ["a-0", "b-0", "b-0"]


def test_a_bind_is_found_before_the_pod_runs(view: View) -> None:
    assert pods(queries.binds(view)) == ["a-0", "b-0", "b-0", "c-0"]


def test_a_workload_is_found_by_its_own_name_or_by_the_name_of_its_pod(view: View) -> None:
    all_evicted = queries.evictions(view)
    assert pods(queries.of_workload(all_evicted, "b")) == pods(queries.of_workload(all_evicted, "b-0")) == ["b-0"]


def test_a_query_uses_no_version_after_its_view(view: View) -> None:
    early = View(view.history, {}, 2, 0.0)
    assert pods(queries.evictions(early)) == []


@pytest.mark.parametrize(
    ("check", "ok", "seen"),
    [
        (queries.evicted_exactly(["c-0", "b-0"]), True, "2 evictions: b-0, c-0"),
        (queries.evicted_exactly(["b-0"]), False, "2 evictions: b-0, c-0"),
        (queries.evicted_exactly([]), False, "2 evictions: b-0, c-0"),
        (queries.evicted_count(2), True, "2 evictions: b-0, c-0"),
        (queries.evicted_count(1), False, "2 evictions: b-0, c-0"),
        (queries.evicted_before("b", ["c"]), True, "in this order: b-0, c-0"),
        (queries.evicted_before("c", ["b"]), False, "in this order: b-0, c-0"),
        (queries.evicted_before("a", ["c"]), False, "in this order: b-0, c-0"),
        (queries.start_in_order(["a", "b"]), True, "a, b"),
        (queries.start_in_order(["b", "a"]), False, "a, b"),
        (queries.start_in_order(["a", "b", "c"]), False, "a, b"),
    ],
    ids=map(str, range(11)),
)
def test_claims_about_the_past(view: View, check: Check, ok: bool, seen: str) -> None:
    outcome = check(view)
    assert (outcome.ok, outcome.seen) == (ok, seen)
    assert outcome.expected


def test_the_absence_of_events_has_a_text() -> None:
    view = History("ns").now()
    assert queries.evicted_exactly([])(view).seen == "no eviction"
    assert queries.start_in_order(["a"])(view).seen == "none has started"


def test_a_phase_is_returned_each_time_it_is_entered() -> None:
    history = History("ns")
    for phase in ("Pending", "Pending", "Running", "Pending"):
        show(history, "a-0", phase=phase)
    assert queries.phases(history.now(), Kind.POD, "a-0") == ["Pending", "Running", "Pending"]


def test_exactly_one_of_several_workloads_is_affected() -> None:
    assert queries.exactly_of(1, ["a", "b"], "run", [True, False]).ok
    assert queries.exactly_of(1, ["a", "b"], "run", [True, True]).seen == "2: a, b"


def test_the_state_at_a_time_contains_no_later_version() -> None:
    history = History("ns")
    show(history, "a-0", node="n1", phase="Running")
    show(history, "a-0", node="n1", phase="Running", evicted=True)
    running, evicted = history.versions(Kind.POD)
    assert not queries.evictions(history.until(running.at))
    assert len(queries.evictions(history.until(evicted.at))) == 1
    assert not list(history.until(history.began).mine(Kind.POD))
