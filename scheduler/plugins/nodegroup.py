"""nodegroup: let queues use, or avoid, named groups of nodes (semantics: Volcano's `plugins/nodegroup`).

A node's label names its group. A queue's `spec.affinity` names groups that it requires, prefers or avoids; an
annotation limits what the queue may hold in a group.

A queue with affinity lists may use only the groups in these lists; a queue without them may use every group that its
anti-affinity does not exclude. (In Volcano a preferred anti-affinity permits a group, even one that is also excluded,
and a queue with an anti-affinity alone fits nowhere.) Preemption within the queue can free room below a limit; no
eviction changes the result of the other rules.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import ClassVar

import msgspec
import numpy as np

from ..framework.plugin import Plugin
from ..framework.session import Session
from ..model import names, resources
from ..model.job import Job
from ..model.nodes import Mask, NodeInfo, Nodes, Vector
from ..model.objects import GroupTerms, Quantities, QueueAffinity
from ..model.queue import ROOT, Queue
from ..model.resources import Resource
from ..model.task import HOLDING, Task
from ..policy.hooks import Exclusion, Feasible, JobValid, NodeRule, NodeScope, Predicate, Score
from ..policy.model import PluginOption
from ..policy.schema import BOOL, Argument
from ..reasons import QueueBroken, UnschedulableReason

REQUIRED, PREFERRED, AVOIDED = 100.0, 50.0, -1.0
"""Scores of a node whose group the queue requires, prefers, and avoids by preference."""
MAX_GROUPS = 256
"""Maximum number of groups that a queue's affinity, or its limits, may name."""
_limits_of = msgspec.json.Decoder(dict[str, Quantities]).decode


class GroupRules:
    """The groups that one queue may use, by its own affinity or that of the nearest ancestor with one.

    Attributes:
        problem: What is invalid in the queue's settings; empty if they are valid.
        limits: Group → maximum amounts that the queue may hold there.
    """

    def __init__(self, queue: Queue, affinity: QueueAffinity | None) -> None:
        affinity = affinity or QueueAffinity()
        use, avoid = affinity.node_group_affinity or GroupTerms(), affinity.node_group_anti_affinity or GroupTerms()
        self.required, self.preferred = use.required or [], list(dict.fromkeys(use.preferred or ()))
        self.excluded, self.avoided = set(avoid.required or ()), set(avoid.preferred or ())
        self.has_affinity = bool(self.required or self.preferred or self.excluded or self.avoided)
        self.limits: dict[str, Resource] = {}
        self.problem = self._contradiction() or self._read_limits(queue)

    def _contradiction(self) -> str:
        named = {*self.required, *self.preferred, *self.excluded, *self.avoided}
        if len(named) > MAX_GROUPS:
            return f"spec.affinity names {len(named)} node groups; name at most {MAX_GROUPS}"
        both = sorted(self.excluded.intersection(self.required))
        return f"spec.affinity requires and excludes node group {both[0]}; remove it from one list" if both else ""

    def _read_limits(self, queue: Queue) -> str:
        text = queue.annotations.get(names.NODE_GROUP_LIMITS)
        if text is None:
            return ""
        try:
            self.limits = {group: resources.parse(amounts) for group, amounts in _limits_of(text).items()}
        except (msgspec.DecodeError, ValueError) as error:
            remedy = 'write for example {"group": {"cpu": "50"}}'
            return f"annotation {names.NODE_GROUP_LIMITS}: {error}; {remedy}"
        too_many = len(self.limits) > MAX_GROUPS
        return f"annotation {names.NODE_GROUP_LIMITS} names more than {MAX_GROUPS} groups" if too_many else ""

    def permits(self, group: str) -> bool:
        """Whether the queue may use a group."""
        if group in self.excluded:
            return False
        return not (self.required or self.preferred) or group in self.required or group in self.preferred

    def score(self, group: str, *, ordered: bool) -> float:
        """Return the queue's preference for a group; if `ordered`, preferred groups score by their position."""
        if group in self.avoided:
            return AVOIDED
        score = REQUIRED if group in self.required else 0.0
        if group in self.preferred:
            position = self.preferred.index(group) if ordered else 0
            score += PREFERRED * (len(self.preferred) - position) / len(self.preferred)
        return score


class Groups:
    """The group of each node: `codes[row]` is an index into `names`. The first name is empty: no group."""

    def __init__(self, nodes: Nodes) -> None:
        labels = [node.labels.get(names.NODE_GROUP, "") for node in nodes.rows]
        self.names = ["", *sorted(set(labels) - {""})]
        code = {name: number for number, name in enumerate(self.names)}
        self.codes = np.array([code[label] for label in labels], dtype=np.intp)

    @classmethod
    def of(cls, nodes: Nodes) -> Groups:
        """Return the groups of the nodes as they are now."""
        return nodes.kept.once("node-groups", lambda: cls(nodes))


class NodeGroup(Plugin, JobValid, NodeScope, Feasible, Predicate, NodeRule, Score):
    """Restrict the pods of a queue to its groups of nodes."""

    name = "nodegroup"
    switches: ClassVar = frozenset({"enableHierarchy"})
    queue_fields: ClassVar = frozenset({"affinity"})
    arguments: ClassVar = {
        "strict": Argument(
            BOOL, default=True, means="`false`: a queue without affinity may use nodes without the group label"
        ),
        "enablePreferredOrder": Argument(BOOL, default=False, means="preferred groups score by their position"),
    }

    def __init__(self, option: PluginOption) -> None:
        super().__init__(option)
        self._strict: bool = self.argument("strict")
        self._ordered: bool = self.argument("enablePreferredOrder")
        self._inherits = option.enabled("enableHierarchy")

    def open(self, session: Session) -> None:
        self._session, self._nodes = session, session.nodes
        self._groups = Groups.of(session.nodes)
        self._rules: dict[str, GroupRules] = {}
        self._held: dict[str, dict[str, Resource]] | None = None
        self._counted: dict[str, tuple[str, str]] = {}
        """Uid of a counted task → its queue and group."""
        session.on_allocation_change(self._count)

    # ----------------------------------------------------------------------------------------------------- the groups

    def _rules_of(self, queue: str) -> GroupRules | None:
        rules = self._rules.get(queue)
        if rules is None and (found := self._session.queues.get(queue)) is not None:
            rules = self._rules[queue] = GroupRules(found, self._affinity_of(found))
        return rules

    def _affinity_of(self, queue: Queue) -> QueueAffinity | None:
        """Return the affinity of a queue; with `enableHierarchy`, a queue without one inherits its ancestor's."""
        queues, visited, one = self._session.queues, set[str](), queue
        while self._inherits and one.object.spec.affinity is None and one.name not in visited and one.name != ROOT:
            visited.add(one.name)
            parent = queues.get(one.parent or ROOT)
            if parent is None:
                break
            one = parent
        return one.object.spec.affinity

    def _of(self, task: Task) -> tuple[str, GroupRules | None]:
        job = self._session.cluster.jobs.get(task.job)
        queue = job.queue if job is not None else ""
        return queue, self._rules_of(queue)

    def job_valid(self, job: Job) -> UnschedulableReason | None:
        rules = self._rules_of(job.queue)
        return QueueBroken(job.queue, rules.problem) if rules is not None and rules.problem else None

    # ----------------------------------------------------------------------------------------------------- the nodes

    def node_scope(self, task: Task) -> Hashable:
        job = self._session.cluster.jobs.get(task.job)
        return job.queue if job is not None else ""

    def _permits(self, rules: GroupRules, group: str) -> bool:
        if not group:
            return not self._strict and not rules.has_affinity
        return rules.has_affinity and rules.permits(group)

    def feasible(self, task: Task) -> Mask:
        _, rules = self._of(task)
        names_of = self._groups.names
        self._session.work.spend(len(names_of))
        allowed = [rules is not None and not rules.problem and self._permits(rules, group) for group in names_of]
        return np.array(allowed, dtype=np.bool_)[self._groups.codes]

    def score(self, task: Task, feasible: Mask) -> Vector | None:  # noqa: ARG002
        _, rules = self._of(task)
        if rules is None or not rules.has_affinity:
            return None
        scores = [rules.score(group, ordered=self._ordered) if group else 0.0 for group in self._groups.names]
        return np.array(scores)[self._groups.codes]

    def node_rule(self, task: Task, node: NodeInfo) -> Exclusion | None:
        queue, rules = self._of(task)
        group = node.labels.get(names.NODE_GROUP, "")
        if rules is None:
            return None
        if not self._permits(rules, group):
            return ("other-group", group) if group else ("no-group", "")
        if (name := self._exceeded(queue, rules, group, task)) is None:
            return None
        held, limit = self._held_in(queue, group).get(name, 0), rules.limits[group][name]
        amounts = f"{resources.render_amount(name, held)} of {resources.render_amount(name, limit)} {name}"
        requested = resources.render_amount(name, task.request[name])
        return ("group-limit", f"queue {queue} holds {amounts} in group {group}, the pod requests {requested}")

    # ----------------------------------------------------------------------------------------------------- the limits

    def predicate(self, task: Task, future: bool) -> Mask | None:  # noqa: ARG002
        queue, rules = self._of(task)
        if rules is None or not any(task.request.keys() & limit.keys() for limit in rules.limits.values()):
            return None
        within = [self._exceeded(queue, rules, group, task) is None for group in self._groups.names]
        return np.array(within, dtype=np.bool_)[self._groups.codes]

    def _exceeded(self, queue: str, rules: GroupRules, group: str, task: Task) -> str | None:
        """Return the first resource in which the task would push the queue above its limit in a group, or None."""
        limit = rules.limits.get(group)
        if not limit:
            return None
        held = self._held_in(queue, group)
        return next(
            (
                name
                for name, most in limit.items()
                if (requested := task.request.get(name, 0)) and held.get(name, 0) + requested > most
            ),
            None,
        )

    def _held_in(self, queue: str, group: str) -> Resource:
        if self._held is None:  # counted late: most policies have no limits
            self._held = {}
            self._add(task for job in self._session.cluster.jobs.values() for task in job.having(HOLDING))
        return self._held.get(queue, {}).get(group, {})

    def _add(self, tasks: Iterable[Task]) -> None:
        assert self._held is not None
        for task in tasks:
            node = self._nodes.by_name.get(task.node)
            group = node.labels.get(names.NODE_GROUP, "") if node is not None else ""
            if group and task.uid not in self._counted:
                queue = self.node_scope(task)
                self._counted[task.uid] = (str(queue), group)
                resources.add_to(self._held.setdefault(str(queue), {}).setdefault(group, {}), task.request)

    def _count(self, task: Task, sign: int) -> None:
        if self._held is None:
            return
        if sign > 0:
            self._add((task,))
        elif (counted := self._counted.pop(task.uid, None)) is not None:
            queue, group = counted
            resources.take_from(self._held[queue][group], task.request)
