"""Draw a case: 1 to 4 nodes, 1 to 5 queues, 2 to 8 jobs, and changes while they run.

The one rule: a case holds only what sentences of features can express, so that a finding can be written as a feature.
Equal seeds and parents give equal cases.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

from ...scheduler.model.resources import MEMORY
from ..reduce import case as cases
from ..reduce.play import policy_of
from .contention import QUEUES, at_least, at_most, contended, partly, within_parents
from .hardware import PLAIN, draw_kind, fit_node, fit_queue, fit_work, fitted, kind_of, policies_for, space_of, unit_of
from .policies import draw_contested, draw_policy
from .vocabulary import EVERYTHING, Vocabulary, limited

_SPACES: tuple[tuple[str, ...], ...] = (
    ("cpu",),
    (cases.GPU,),
    ("cpu", cases.GPU),
    ("cpu", MEMORY),
    ("cpu", MEMORY, cases.GPU),
)
"""The dimensions of a case. Each amount is drawn on its own: pods of other shapes compete."""
_CLASSES = (cases.CasePriorityClass("low", 10), cases.CasePriorityClass("high", 100))


@dataclass(frozen=True, slots=True)
class Draw:
    """The input of a draw.

    Attributes:
        policies: Texts of the policies that a sentence can name, by name.
        parent: A case that reached something new: half of the draws change it instead of drawing a new case.
        may: What the case may use.
    """

    seed: int
    policies: Mapping[str, str]
    parent: cases.Case | None = None
    may: Vocabulary = EVERYTHING


def generate(draw: Draw) -> cases.Case:
    random = Random(draw.seed)
    if draw.parent is not None and random.random() < 0.5:
        return limited(fitted(_changed(random, draw.parent, draw)), draw.may)
    kind = draw_kind(random, draw.policies, draw.may)
    return limited(fitted(_CaseDraw(random, draw, kind).case()), draw.may)


class _CaseDraw:
    def __init__(self, random: Random, draw: Draw, kind: str) -> None:
        self._random, self._policies, self._may, self._kind = random, draw.policies, draw.may, kind
        self._space: tuple[str, ...] = random.choice(_SPACES) if kind == PLAIN else space_of(kind)
        self._has_classes = random.random() < 0.75
        self._shape: tuple[int, cases.Amounts] | None = None
        """The number of pods and the requests of every job, if all jobs are equal."""
        self._queues: tuple[cases.CaseQueue, ...] = ()
        self._nodes: tuple[cases.CaseNode, ...] = ()

    def case(self) -> cases.Case:
        random = self._random
        known = policies_for(self._policies, self._kind)
        policy = draw_policy(random, known, may_change=self._may.has_policy_files)
        plugin = policy_of(policy).plugin("capacity")
        if random.random() < 0.25:  # equal jobs show the order in which they are served and evicted
            self._shape = random.choice((1, 1, 2)), self.amount(1, 3)
        elif self._kind == PLAIN and random.random() < 0.5:
            return self._contended()
        self._nodes = tuple(self.node(f"n{number}") for number in range(1, random.choice((1, 1, 2, 2, 3, 4)) + 1))
        self._queues = self._drawn_queues(is_tree=plugin is not None and plugin.enabled("enableHierarchy"))
        jobs = [self.work(f"train-{number}") for number in range(1, random.randint(2, 8) + 1)]
        if random.random() < 0.5:  # later work has a higher priority, so that it has to evict
            jobs.sort(key=lambda job: (job.is_service, job.priority == "high"))
        steps: list[cases.Step] = []
        while jobs:
            together = random.choice((1, 1, 1, 2, 3))
            steps.append(cases.SubmitStep(tuple(jobs[:together])))
            del jobs[:together]
        case = cases.Case(policy, self._nodes, self._queues, _CLASSES if self._has_classes else (), (), tuple(steps))
        for _ in range(random.choice((0, 0, 1, 1, 2, 3))):
            case = _with_change(random, case, self)
        return case

    def _contended(self) -> cases.Case:
        random = self._random
        policy = draw_contested(random, self._policies, may_change=self._may.has_policy_files)
        case = contended(random, policy, self._space, _CLASSES if self._has_classes else ())
        self._nodes, self._queues = case.nodes, case.queues
        return _with_change(random, case, self) if random.random() < 0.4 else case

    def amount(self, least: int, most: int) -> cases.Amounts:
        return cases.amounts((name, self._random.randint(least, most) * unit_of(name)) for name in self._space)

    def node(self, name: str) -> cases.CaseNode:
        return fit_node(self._random, self._kind, cases.CaseNode(name, self.amount(1, 6)))

    def work(self, name: str) -> cases.Work:
        random = self._random
        pods = random.choice((1, 1, 1, 2, 2, 3, 4))
        minimum = pods if random.random() < 0.7 else random.randint(1, pods)
        requests = partly(random, self.amount(1, 4)) if random.random() < 0.97 else ()
        if self._shape is not None:
            pods, requests = self._shape
            minimum = pods
        parents = {queue.parent for queue in self._queues}
        leaves = [queue.name for queue in self._queues if queue.name not in parents] or ["default"]
        work = cases.Work(
            name,
            random.choice(leaves) if random.random() < 0.95 else "default",
            random.choice(("low", "high", "")) if self._has_classes else "",
            pods,
            minimum,
            requests,
            preemptable=random.random() < 0.9,
        )
        return fit_work(random, self._kind, work, self._nodes)

    def _drawn_queues(self, *, is_tree: bool) -> tuple[cases.CaseQueue, ...]:
        """Draw queues in the order of a walk: a parent comes before its children."""
        found: list[cases.CaseQueue] = []
        for name in sorted(self._random.sample(QUEUES, self._random.choice((1, 1, 2, 2, 3, 4, 5)))):
            above = [queue.name for queue in found if not queue.parent]
            parent = self._random.choice(above) if is_tree and above and self._random.random() < 0.6 else ""
            found.append(self.queue(name, parent))
        return tuple(within_parents(found))

    def queue(self, name: str, parent: str) -> cases.CaseQueue:
        random = self._random
        sums = {name: sum(dict(node.has)[name] for node in self._nodes) for name in self._space}
        most = max(total // unit_of(name) for name, total in sums.items())
        deserved = partly(random, self.amount(0, max(most * 2 // 3, 1))) if random.random() < 0.7 else ()
        queue = cases.CaseQueue(
            name,
            parent,
            random.choice((1, 1, 1, 2, 3)),
            random.choice((0, 0, 0, 1)),
            capability=at_least(self.amount(1, most), deserved) if random.random() < 0.3 else (),
            deserved=deserved,
            guarantee=at_most(self.amount(0, max(most // 3, 1)), deserved) if random.random() < 0.2 else (),
            reclaimable=random.random() < 0.85,
        )
        return fit_queue(random, self._kind, queue, self._nodes)


# ------------------------------------------------------------------------------------------------------------ changes


def _with_change(random: Random, case: cases.Case, draw: _CaseDraw) -> cases.Case:
    """Insert a change of the cluster after one of the steps."""
    at = random.randint(1, len(case.steps))
    submitted = (work for step in case.steps[:at] if isinstance(step, cases.SubmitStep) for work in step.work)
    over = case.completed
    before = [work for work in submitted if work.name not in over]
    parents = {queue.parent for queue in case.queues}
    closed = {step.queue for step in case.steps if isinstance(step, cases.CloseStep)}
    open_ = [queue.name for queue in case.queues if queue.name not in parents | closed]
    step: cases.Step | None = None
    match random.randrange(8):
        case 0 if len(case.nodes) > 1:
            step = cases.LeaveStep(random.choice(case.nodes).name)
        case 1:
            step = cases.JoinStep((draw.node(f"n{len(case.all_nodes) + 1}"),))
        case 2 | 3 if case.queues:
            old = random.choice(case.queues)
            step = cases.ChangeStep(
                _covering(replace(draw.queue(old.name, old.parent), reclaimable=old.reclaimable), case)
            )
        case 4 | 5 if before:
            job = random.choice(before)
            is_over = job.is_service or random.random() < 0.6
            step = cases.CompleteStep(job.name) if is_over else cases.FailStep(job.name, random.randrange(job.pods))
        case 6:
            name = random.choice(sorted(draw._policies))
            step = cases.UseStep(name, draw._policies[name])
        case 7 if open_:
            step = cases.CloseStep(random.choice(open_))
    removed = {step.node for step in case.steps if isinstance(step, cases.LeaveStep)}
    if step is None or (isinstance(step, cases.LeaveStep) and removed):
        return case
    return replace(case, steps=(*case.steps[:at], step, *case.steps[at:]))


def _covering(queue: cases.CaseQueue, case: cases.Case) -> cases.CaseQueue:
    """Return the queue with amounts that cover its children, as the scheduler requires."""
    return within_parents([queue, *(other for other in case.queues if other.name != queue.name)])[0]


def _changed(random: Random, parent: cases.Case, given: Draw) -> cases.Case:
    draw = _CaseDraw(random, given, kind_of(parent))
    draw._space = space_of(draw._kind) if draw._kind != PLAIN else tuple(name for name, _ in parent.all_nodes[0].has)
    draw._nodes, draw._queues, draw._has_classes = parent.nodes, parent.queues, bool(parent.classes)
    case = parent
    for _ in range(random.randint(1, 3)):
        match random.randrange(5):
            case 0:
                case = _with_change(random, case, draw)
            case 1:
                text = draw_policy(random, given.policies, may_change=given.may.has_policy_files)
                case = replace(case, policy=text)
            case 2:
                old = random.choice(case.jobs)
                case = cases.map_work(case, {old.name: draw.work(old.name)})
            case 3:
                node = random.choice(case.nodes)
                case = cases.map_nodes(case, {node.name: draw.node(node.name)})
            case 4 if case.queues:
                queue = random.choice(case.queues)
                case = cases.map_queues(case, {queue.name: draw.queue(queue.name, queue.parent)})
                case = replace(case, queues=tuple(within_parents(list(case.queues))))
    return case
