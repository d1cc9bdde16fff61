"""The state, the counts and the reported problems of a queue."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from schedspec.scheduler.controllers.queue.reconcile import ObservedQueue, reconcile
from schedspec.scheduler.controllers.queue.state import usability
from schedspec.scheduler.controllers.runtime.objects import COMMANDS, Command, ControlledQueue
from schedspec.scheduler.controllers.runtime.writes import ApplyObject, Create, EmitEvent, Remove


def queue(name: str, state: str = "Open", parent: str = "root", **given: Any) -> ControlledQueue:
    meta = {"name": name, "uid": f"uid-{name}", "annotations": given.pop("annotations", {})}
    return msgspec.convert(
        {"metadata": meta, "spec": {"parent": parent, **given}, "status": {"state": state}}, ControlledQueue
    )


def command(action: str, name: str) -> Command:
    body = {"metadata": {"name": "c", "namespace": "ns", "uid": "uid-c"}, "action": action}
    return msgspec.convert({**body, "target": {"kind": "Queue", "name": name}}, Command)


def seen(name: str, *queues: ControlledQueue, **given: Any) -> ObservedQueue:
    known = {one.metadata.name: one for one in [queue("root", parent=""), *queues]}
    return ObservedQueue(name, known.get(name), known, **given)


def state(observed: ObservedQueue) -> str:
    """Return the written state, or the old one if none is written."""
    for write in reconcile(observed).writes:
        if isinstance(write, ApplyObject) and write.sub == "status":
            found: str = write.body["status"]["state"]
            return found
    assert observed.queue is not None
    return observed.queue.status.state


def problem(observed: ObservedQueue) -> tuple[str, str, str]:
    (write,) = [
        write for write in reconcile(observed).writes if isinstance(write, ApplyObject) and write.sub == "status"
    ]
    (condition,) = write.body["status"]["conditions"]
    return condition["status"], condition["reason"], condition["message"]


@pytest.mark.parametrize("name", ["root", "default"])
def test_root_and_default_are_created(name: str) -> None:
    (write,) = reconcile(ObservedQueue(name, None, {})).writes
    assert isinstance(write, Create)
    assert write.name == name


def test_other_queues_are_not_created() -> None:
    assert reconcile(ObservedQueue("q", None, {})).writes == ()


@pytest.mark.parametrize(
    ("before", "action", "groups", "after"),
    [
        ("", None, 0, "Open"),
        ("Open", None, 3, "Open"),
        ("Open", "CloseQueue", 0, "Closed"),
        ("Open", "CloseQueue", 2, "Closing"),
        ("Closing", None, 1, "Closing"),
        ("Closing", None, 0, "Closed"),
        ("Closed", None, 1, "Closing"),
        ("Closed", "CloseQueue", 0, "Closed"),
        ("Closed", "OpenQueue", 0, "Open"),
        ("Closing", "OpenQueue", 2, "Open"),
        ("Odd", None, 0, "Unknown"),
        ("Odd", "OpenQueue", 0, "Open"),
    ],
)
def test_the_state_follows_commands_and_podgroups(before: str, action: str | None, groups: int, after: str) -> None:
    commands = [command(action, "q")] if action else []
    assert state(seen("q", queue("q", before), phases={"Running": groups}, commands=commands)) == after


def test_a_command_is_removed_after_its_effect_is_written() -> None:
    writes = reconcile(seen("q", queue("q"), commands=[command("CloseQueue", "q")])).writes
    kinds = [type(write) for write in writes if not isinstance(write, EmitEvent)]
    assert kinds == [ApplyObject, Remove]
    assert writes[1] == Remove(COMMANDS, "ns", "c", "uid-c")


MARK = {"volcano.sh/closed-by-parent": "true"}


class TestHierarchy:
    def test_closing_a_parent_closes_its_children_and_marks_them(self) -> None:
        observed = seen("c", queue("p", "Closed"), queue("c", parent="p"))
        assert state(observed) == "Closed"
        marks = [w for w in reconcile(observed).writes if isinstance(w, ApplyObject) and not w.sub]
        assert marks[0].body == {"metadata": {"annotations": MARK}}

    def test_the_mark_is_written_before_the_state(self) -> None:
        writes = reconcile(seen("c", queue("p", "Closed"), queue("c", parent="p"))).writes
        assert [write.sub for write in writes if isinstance(write, ApplyObject)] == ["", "status"]

    def test_opening_the_parent_opens_the_children_that_it_closed(self) -> None:
        observed = seen("c", queue("p"), queue("c", "Closed", "p", annotations=MARK))
        assert state(observed) == "Open"
        marks = [w for w in reconcile(observed).writes if isinstance(w, ApplyObject) and not w.sub]
        assert marks[0].body == {"metadata": {"annotations": {"volcano.sh/closed-by-parent": None}}}

    def test_a_child_that_was_closed_on_its_own_stays_closed(self) -> None:
        assert state(seen("c", queue("p"), queue("c", "Closed", "p"))) == "Closed"

    def test_closing_a_parent_does_not_mark_a_child_that_was_closed_before(self) -> None:
        writes = reconcile(seen("c", queue("p", "Closed"), queue("c", "Closed", "p"))).writes
        assert [write for write in writes if isinstance(write, ApplyObject) and not write.sub] == []

    def test_a_child_does_not_open_before_its_parent(self) -> None:
        observed = seen("c", queue("p", "Closed"), queue("c", "Closed", "p"), commands=[command("OpenQueue", "c")])
        assert state(observed) == "Closed"
        events = [write for write in reconcile(observed).writes if isinstance(write, EmitEvent)]
        assert "open that first" in events[0].message

    def test_root_is_never_closed(self) -> None:
        assert state(seen("root", commands=[command("CloseQueue", "root")])) == "Open"


def of_memory(amount: str) -> dict[str, dict[str, str]]:
    return {"resource": {"memory": amount}}


@pytest.mark.parametrize(
    ("queues", "reason", "text"),
    [
        ([queue("q")], "Ready", ""),
        ([queue("q", parent="gone")], "ParentMissing", "queue gone does not exist"),
        ([queue("q", parent="r"), queue("r", parent="q")], "Cycle", "q is its own ancestor by way of r"),
        (
            [
                queue("q", deserved={"cpu": 4}),
                queue("a", parent="q", deserved={"cpu": 3}),
                queue("b", parent="q", deserved={"cpu": 2}),
            ],
            "ChildrenDeservedExceed",
            "cpu 5 > 4",
        ),
        (
            [queue("q", guarantee=of_memory("4Gi")), queue("a", parent="q", guarantee=of_memory("5Gi"))],
            "ChildrenGuaranteeExceed",
            "memory 5Gi > 4Gi",
        ),
        (
            [queue("p", capability={"cpu": 2}), queue("q", parent="p", capability={"cpu": 3})],
            "CapabilityExceeds",
            "cpu 3 > 2",
        ),
        ([queue("q", dequeueStrategy="traverse")], "Ready", ""),
    ],
)
def test_problems_are_reported_on_the_queue(queues: list[ControlledQueue], reason: str, text: str) -> None:
    status, found, message = problem(seen("q", *queues))
    assert (status, found) == ("True" if reason == "Ready" else "False", reason)
    assert text in message


@pytest.mark.parametrize(
    ("phases", "reason"), [({"Pending": 1, "Running": 2}, "NotALeaf"), ({"Completed": 3}, "Ready")]
)
def test_a_queue_with_children_reports_podgroups_of_its_own(phases: dict[str, int], reason: str) -> None:
    _, found, message = problem(seen("q", queue("q"), queue("a", parent="q"), phases=phases))
    assert found == reason
    assert message.startswith(
        "3 PodGroups are in this queue, which has child queues (the oldest is a) and drains"
        if reason == "NotALeaf"
        else ""
    )
    assert problem(seen("a", queue("q"), queue("a", parent="q"), phases=phases))[1] == "Ready", (
        "a child is not affected"
    )


UNHONOURED: dict[str, dict[str, Any]] = {
    "spec.extendClusters": {"extendClusters": [{"name": "c"}]},
    "spec.dequeueStrategy": {"dequeueStrategy": "fifo"},
    "spec.dra": {"dra": {}},
}


@pytest.mark.parametrize("field", UNHONOURED)
def test_an_unsupported_field_is_named_on_the_queue(field: str) -> None:
    status, reason, message = problem(seen("q", queue("q", **UNHONOURED[field])))
    assert (status, reason) == ("False", "NotHonoured")
    assert message == f"{field}: not honoured here; leave it out"


def test_a_child_without_an_amount_of_a_resource_does_not_exceed_its_parent() -> None:
    queues = [queue("q", deserved={"cpu": 4}), queue("a", parent="q", deserved={"memory": "5Gi"})]
    assert problem(seen("q", *queues))[1] == "Ready"


def test_counts_follow_the_podgroups() -> None:
    observed = seen("q", queue("q"), phases={"Running": 2, "Inqueue": 1, "Pending": 3, "Unknown": 0, "Completed": 4})
    (write,) = [write for write in reconcile(observed).writes if isinstance(write, ApplyObject)]
    status = {key: value for key, value in write.body["status"].items() if key != "conditions"}
    assert status == {"state": "Open", "running": 2, "inqueue": 1, "pending": 3, "unknown": 0, "completed": 4}
    assert write.manager, "the scheduler's fields of the status are kept"


def test_an_unchanged_queue_is_not_written_again() -> None:
    (write,) = [write for write in reconcile(seen("q", queue("q"))).writes if isinstance(write, ApplyObject)]
    again = queue("q")
    again.status = msgspec.convert(write.body["status"], type(again.status))
    assert reconcile(seen("q", again)).writes == []


@pytest.mark.parametrize(
    ("name", "text"),
    [("a", ""), ("gone", "does not exist"), ("shut", "is Closed"), ("p", "has child queues"), ("root", "child queues")],
)
def test_usability_names_the_problem_of_a_queue(name: str, text: str) -> None:
    queues = [queue("root", parent=""), queue("p"), queue("a", parent="p"), queue("shut", "Closed")]
    found = usability(name, queues)
    assert text in found
    assert bool(found) == bool(text)


def test_an_unreadable_amount_is_reported_on_its_queue_only() -> None:
    above = queue("above", deserved={"cpu": "1"})
    bad = queue("bad", parent="above", deserved={"cpu": "4"}, capability={"memory": "9" * 400})
    status, reason, message = problem(seen("bad", above, bad))
    assert (status, reason) == ("False", "Malformed")
    assert message.startswith("spec.capability: memory: '999")
    assert problem(seen("above", above, bad))[1] == "ChildrenDeservedExceed"


def test_the_event_about_unreadable_amounts_is_left_to_the_scheduler() -> None:
    bad = queue("bad", capability={"memory": "9" * 400})
    lost = queue("lost", parent="gone", capability={"memory": "9" * 400})
    events = [it for given in (seen("bad", bad), seen("lost", lost)) for it in reconcile(given).writes]
    (event,) = [it for it in events if isinstance(it, EmitEvent)]
    assert (event.about.name, event.reason) == ("lost", "ParentMissing")
    assert "memory" not in event.message
