"""Create sessions from small states in the notation of tables, and draw such states."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from schedspec.scheduler.framework.session import Session
from schedspec.scheduler.model.task import Task, TaskStatus
from schedspec.scheduler.plugins import PLUGINS
from schedspec.scheduler.plugins.queue.plugin import QueuePlugin
from schedspec.scheduler.policy.model import PluginOption, Policy
from tests.support.core.world import World


def session_of(
    table: dict[str, Any], plugin: str, *, arguments: dict[str, Any] | None = None, tree: bool = False
) -> Session:
    """Return a session over the table's objects with one queue plugin only."""
    option = PluginOption(plugin, {"enableHierarchy": tree}, arguments or {})
    world = World(Policy(actions=(), tiers=((option,),)))
    world.load(table)
    return Session(world.cluster, world.policy, world.now, PLUGINS)


def queues_of(session: Session) -> QueuePlugin:
    """Return the queue plugin of a session."""
    return next(plugin for plugin in session.plugins.values() if isinstance(plugin, QueuePlugin))


def task_of(session: Session, name: str) -> Task:
    return session.cluster.tasks[f"t/{name}"]


def tasks_in(session: Session, statuses: TaskStatus) -> list[Task]:
    return [task for job in session.jobs.values() for task in job.having(statuses)]


CPUS = st.integers(0, 6)
AMOUNT = st.builds(lambda cpu, gpu: f"{cpu} cpu, {gpu} gpu", CPUS, CPUS)
REQUEST = st.one_of(
    st.builds(lambda cpu, gpu: f"{cpu} cpu, {gpu} gpu", st.integers(1, 4), st.integers(1, 4)),
    st.builds(lambda cpu: f"{cpu} cpu", st.integers(1, 4)),
    st.builds(lambda gpu: f"{gpu} gpu", st.integers(1, 4)),
)


@st.composite
def queue_rows(draw: st.DrawFn, *, tree: bool = False) -> list[dict[str, Any]]:
    """Draw two to five queues with random amounts and weights; in a tree, with an earlier queue as the parent."""
    rows: list[dict[str, Any]] = []
    for number in range(draw(st.integers(2, 5))):
        row: dict[str, Any] = {"name": f"q{number}", "weight": draw(st.integers(1, 4))}
        for field in ("deserved", "guarantee", "capability"):
            if draw(st.booleans()):
                row[field] = draw(AMOUNT)
        if tree:
            row["parent"] = draw(st.sampled_from(["root", *(earlier["name"] for earlier in rows)]))
        rows.append(row)
    return rows


@st.composite
def tables(draw: st.DrawFn, *, tree: bool = False) -> dict[str, Any]:
    """Draw a node, queues, and running and waiting jobs in the leaf queues."""
    queues = draw(queue_rows(tree=tree))
    leaves = [row["name"] for row in queues if not any(other.get("parent") == row["name"] for other in queues)]
    jobs = []
    for number in range(draw(st.integers(2, 6))):
        state = draw(st.sampled_from([" running on n1", ""]))
        count = draw(st.integers(1, 3))
        jobs.append(
            {
                "name": f"j{number}",
                "queue": draw(st.sampled_from(leaves)),
                "min": draw(st.integers(0, count)),
                "tasks": f"{count} x {draw(REQUEST)}{state}",
            }
        )
    return {"nodes": [{"name": "n1", "has": "24 cpu, 24 gpu"}], "queues": queues, "jobs": jobs}


PAIR = st.builds(lambda cpu, gpu: f"{cpu} cpu, {gpu} gpu", st.integers(1, 2), st.integers(1, 2))


@st.composite
def rivals(draw: st.DrawFn) -> dict[str, Any]:
    """Draw two queues that deserve, hold and request cpus and cards: such queues can play ping-pong."""
    rows = [{"name": name, "deserved": draw(AMOUNT), "weight": draw(st.integers(1, 3))} for name in ("a", "b")]
    jobs = []
    for name in ("a", "b"):
        for number, state in enumerate((" running on n1", " running on n1", "")):
            if count := draw(st.integers(0, 3)):
                tasks = f"{count} x {draw(PAIR)}{state}"
                jobs.append({"name": f"{name}{number}", "queue": name, "min": draw(st.integers(0, 2)), "tasks": tasks})
    return {"nodes": [{"name": "n1", "has": f"{draw(st.integers(4, 12))} cpu, 12 gpu"}], "queues": rows, "jobs": jobs}
