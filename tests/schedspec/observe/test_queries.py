"""Queries of histories that the tests build."""

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
    "as many pods as wanted": (queries.evicted_exactly(["b-0", "c-0"]), False),
    "one more may come": (queries.evicted_exactly(["b-0", "c-0", "d-0"]), False),
    "another pod": (queries.evicted_exactly(["b-0", "d-0"]), True),
    "any pod where none may": (queries.evicted_exactly([]), True),
    "fewer than wanted": (queries.evicted_count(3), False),
    "more than wanted": (queries.evicted_count(1), True),
    "before the other": (queries.evicted_before("b", ["c"]), False),
    "before one that has not": (queries.evicted_before("a", ["d"]), False),
    "after the other": (queries.evicted_before("a", ["c"]), True),
    "the last has not started": (queries.start_in_order(["a", "b", "d"]), False),
    "the wrong order": (queries.start_in_order(["b", "a"]), True),
    "the first has not started": (queries.start_in_order(["d", "a"]), True),
}


@pytest.mark.parametrize(("check", "hopeless"), HOPELESS.values(), ids=HOPELESS)
def test_what_has_happened_cannot_be_undone(view: View, check: Check, hopeless: bool) -> None:
    assert check(view).hopeless == (0.0 if hopeless else None)


def test_a_pod_that_is_evicted_twice_is_one_too_many(view: View) -> None:
    show(view.history, "b-0", uid="again", node="n1", phase="Running", evicted=True)
    now = view.history.now()
    assert queries.evicted_exactly(["b-0", "c-0"])(now).hopeless == 0.0
    assert queries.evicted_count(3)(now).hopeless == 0.0


def test_more_workloads_than_wanted_never_become_fewer() -> None:
    assert queries.exactly_of(1, ["a", "b"], "lose a pod", [True, True]).hopeless == 0.0
    assert queries.exactly_of(1, ["a", "b"], "lose a pod", [False, False]).hopeless is None


def pods(happened: list[queries.Happened]) -> list[str]:
    return [it.pod for it in happened]


def test_an_eviction_counts_once_a_pod_however_often_it_is_shown(view: View) -> None:
    assert pods(queries.evictions(view)) == ["b-0", "c-0"]


def test_a_successor_starts_anew(view: View) -> None:
    assert pods(queries.starts(view)) == ["a-0", "b-0", "b-0"]


def test_binds_are_seen_before_anything_runs(view: View) -> None:
    assert pods(queries.binds(view)) == ["a-0", "b-0", "b-0", "c-0"]


def test_a_workload_is_named_by_itself_or_by_its_pod(view: View) -> None:
    all_evicted = queries.evictions(view)
    assert pods(queries.of_workload(all_evicted, "b")) == pods(queries.of_workload(all_evicted, "b-0")) == ["b-0"]


def test_a_view_sees_no_further_than_itself(view: View) -> None:
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


def test_nothing_that_happened_is_said_so() -> None:
    view = History("ns").now()
    assert queries.evicted_exactly([])(view).seen == "no eviction"
    assert queries.start_in_order(["a"])(view).seen == "none has started"


def test_phases_are_told_as_often_as_they_are_entered() -> None:
    history = History("ns")
    for phase in ("Pending", "Pending", "Running", "Pending"):
        show(history, "a-0", phase=phase)
    assert queries.phases(history.now(), Kind.POD, "a-0") == ["Pending", "Running", "Pending"]


def test_exactly_so_many_of_several() -> None:
    assert queries.exactly_of(1, ["a", "b"], "run", [True, False]).ok
    assert queries.exactly_of(1, ["a", "b"], "run", [True, True]).seen == "2: a, b"


def test_the_state_of_a_moment_lacks_what_came_later() -> None:
    history = History("ns")
    show(history, "a-0", node="n1", phase="Running")
    show(history, "a-0", node="n1", phase="Running", evicted=True)
    running, evicted = history.versions(Kind.POD)
    assert not queries.evictions(history.until(running.at))
    assert len(queries.evictions(history.until(evicted.at))) == 1
    assert not list(history.until(history.began).mine(Kind.POD))
