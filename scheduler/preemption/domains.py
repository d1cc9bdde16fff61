"""Find victims for a job whose pods have to be close to each other, within the domain that costs least.

1. Domains are ranked by how many pods lack room in them. A domain that could not hold the job even if every candidate
   were evicted is left out.
2. In each of the first few, victims are chosen as for any job, by a trial that is undone.
3. The domain whose victims cost least is chosen, and the search is repeated there.

No victim is evicted outside of the domain in which the job then starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..framework.session import Session
from ..model.job import Job
from ..model.task import HOLDING, Task, TaskStatus
from ..placement.domain_choice import DomainChoice, Wanted
from ..topology.domains import Domain
from ..topology.subgroups import SubGroups
from .request import Where

BINDING = HOLDING | TaskStatus.PIPELINED


def places(session: Session, job: Job, tasks: Sequence[Task], rows: set[int]) -> Iterator[Where] | None:
    """Return where to look for victims, the most promising first; None if the job may be anywhere.

    Args:
        session: The cycle.
        job: The job that needs room.
        tasks: Its tasks that wait.
        rows: The nodes with candidates.
    """
    closeness = session.hooks.closeness(job, None)
    groups = session.own(SubGroups).of(job)
    if closeness is None and not groups:
        return None
    return _places(session, job, tasks, rows)


def _places(session: Session, job: Job, tasks: Sequence[Task], rows: set[int]) -> Iterator[Where]:
    choice, closeness = (
        DomainChoice(session.placement, session.nodes, session.hooks),
        session.hooks.closeness(job, None),
    )
    lacking = max(min(job.lacking, len(tasks)), 1)
    if closeness is None:
        outers: list[Domain | None] = [None]
    else:
        wanted = Wanted(tasks, lacking, _rows(session, job.having(BINDING)))
        outers = list(choice.with_victims(closeness, wanted, None, rows))
    for outer in outers:
        inner = _of_subgroups(session, job, tasks, outer, rows)
        if inner is not None:
            yield inner


def _of_subgroups(
    session: Session, job: Job, tasks: Sequence[Task], outer: Domain | None, rows: set[int]
) -> Where | None:
    """Return the most promising domain of each subgroup inside of `outer`; None if a subgroup has none."""
    choice = DomainChoice(session.placement, session.nodes, session.hooks)
    groups = session.own(SubGroups)
    by_task: dict[str, Domain | None] = {}
    for group in groups.of(job).values():
        own = [task for task in tasks if task in group.tasks]
        closeness = session.hooks.closeness(job, group)
        if closeness is None or not own:
            continue
        held = _rows(session, (task for task in group.tasks if task.status & BINDING))
        found = list(choice.with_victims(closeness, Wanted(own, max(group.lacking, 1), held), outer, rows))
        if not found:
            return None
        by_task.update((task.key, found[0]) for task in own)
    return lambda task: by_task.get(task.key, outer)


def _rows(session: Session, tasks: Iterator[Task]) -> list[int]:
    by_name = session.nodes.by_name
    return [by_name[task.node].row for task in tasks if task.node in by_name]
