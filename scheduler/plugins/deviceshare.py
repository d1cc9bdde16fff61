"""deviceshare: pods share cards by memory and cores (semantics: Volcano's `plugins/deviceshare`, for NVIDIA).

The plugin decides which cards of a node a pod gets, and writes them as annotations that the device plugin reads. The
annotations are written together with the binding, so that no pod has a node without cards. Requests for cards count in
queues like any resource: by card, memory or cores, whichever a queue's deserved amounts name.

Better than Volcano: unhealthy cards are not used, `binpack` and `spread` apply to `gpu-memory` too, `spread` scores a
card before the pod is on it, and no other plugin is needed to account for the cards.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import ClassVar

import numpy as np

from ..framework.plugin import Plugin
from ..framework.session import Session
from ..model.card_demand import GPU_MEMORY, GPU_NUMBER, VGPU_NUMBER
from ..model.card_notation import written
from ..model.job import Job
from ..model.nodes import Mask, NodeInfo, Vector
from ..model.task import Task, TaskStatus
from ..placement.card_choice import CardRequest, Order
from ..placement.shared_cards import SharedCards
from ..policy.hooks import (
    BindAnnotations,
    Exclusion,
    JobValid,
    NodeRule,
    NodeScope,
    PodScore,
    Predicate,
    VictimGroups,
)
from ..policy.model import PluginOption
from ..policy.schema import BOOL, INT, RULES, TEXT, Argument
from ..reasons import UnschedulableReason, WrongCard
from ..topology.domains import Domain

SHARING, NUMBER, VGPU = (f"deviceshare.{name}Enable" for name in ("GPUSharing", "GPUNumber", "VGPU"))
SCHEMES = {"memory": (SHARING, GPU_MEMORY), "number": (NUMBER, GPU_NUMBER), "vgpu": (VGPU, VGPU_NUMBER)}
"""Scheme → the argument that enables it, and the resource that pods request."""
_MIG = "cards are shared by memory and cores, not as MIG instances"


class DeviceShare(Plugin, JobValid, NodeScope, Predicate, NodeRule, PodScore, VictimGroups, BindAnnotations):
    """Assign shared cards to pods."""

    name = "deviceshare"
    exclusive: ClassVar = ((SHARING, NUMBER), (SHARING, VGPU), (NUMBER, VGPU))
    arguments: ClassVar = {
        SHARING: Argument(BOOL, default=False, means=f"pods get a part of a card by `{GPU_MEMORY}`"),
        NUMBER: Argument(BOOL, default=False, means=f"pods get whole cards by `{GPU_NUMBER}`"),
        VGPU: Argument(BOOL, default=False, means="pods get virtual GPUs: cards, memory and cores of each"),
        "deviceshare.SchedulePolicy": Argument(
            TEXT, choices=("binpack", "spread"), means="`binpack` fills cards, `spread` prefers cards without pods"
        ),
        "deviceshare.ScheduleWeight": Argument(INT, 0, default=0, means="weight of that preference among nodes"),
        "deviceshare.GPUExclusiveRules": Argument(
            RULES, means="pods that have all labels of one of these maps never share a card"
        ),
        "deviceshare.NodeLockEnable": Argument(BOOL, ignored="cards and binding are written in one request"),
        "deviceshare.KnownGeometriesCMName": Argument(TEXT, ignored=_MIG),
        "deviceshare.KnownGeometriesCMNamespace": Argument(TEXT, ignored=_MIG),
    }

    def __init__(self, option: PluginOption) -> None:
        super().__init__(option)
        self._order: Order = self.argument("deviceshare.SchedulePolicy") or ""
        self._weight: int = self.argument("deviceshare.ScheduleWeight")
        self._rules = [frozenset(rule.items()) for rule in self.argument("deviceshare.GPUExclusiveRules") or ()]

    def open(self, session: Session) -> None:
        self._session = session
        self._cards = SharedCards(session.nodes, self._request_of, self._order, session.work.spend)
        self._shortages: dict[tuple[CardRequest, Domain | None], tuple[int, str]] = {}
        session.on_allocation_change(self._count)

    def _count(self, task: Task, sign: int) -> None:
        if task.cards is not None:
            self._cards.count(task, sign)

    def _request_of(self, task: Task) -> CardRequest:
        assert task.cards is not None
        rules: tuple[int, ...] = ()
        if self._rules:
            labels = (task.pod.metadata.labels or {}).items()
            rules = tuple(number for number, rule in enumerate(self._rules) if rule <= labels)
        return CardRequest(task.cards, task.job if task.cards.apart else "", rules)

    # ------------------------------------------------------------------------------------------------------ the nodes

    def node_scope(self, task: Task) -> Hashable:
        return None if task.cards is None else self._request_of(task)

    def predicate(self, task: Task, future: bool) -> Mask | None:
        return None if task.cards is None else self._cards.feasibility(task, future=future)[0]

    def node_rule(self, task: Task, node: NodeInfo) -> Exclusion | None:
        if task.cards is None or self._cards.feasibility(task, future=True)[0][node.row]:
            return None
        return ("shared-card", self._shortage(task))

    def _shortage(self, task: Task) -> str:
        """Return what the best node lacks for the task; all nodes of a domain report the same."""
        placement, version = self._session.placement, len(self._session.nodes.touched)
        key = (self._request_of(task), placement.domain)
        if self._shortages.get(key, (-1, ""))[0] != version:
            lacking = placement.static(task) & ~self._cards.feasibility(task, future=True)[0]
            self._shortages[key] = version, self._cards.shortage(key[0], np.flatnonzero(lacking))
        return self._shortages[key][1]

    def pod_score(self, task: Task, feasible: Mask) -> Vector | None:  # noqa: ARG002
        if task.cards is None or not self._weight or not self._order:
            return None
        (now, scores), (_, later) = (self._cards.feasibility(task, future=future) for future in (False, True))
        return self._weight * np.where(now, scores, later)

    def victim_groups(self, preemptor: Task, node: NodeInfo) -> Iterable[frozenset[str]]:
        return () if preemptor.cards is None else self._cards.victim_groups(self._request_of(preemptor), node)

    def bind_annotations(self, task: Task) -> Mapping[str, str]:
        if task.cards is None or (shares := self._cards.chosen(task)) is None:
            return {}
        return written(task.cards, shares, task.node, self._session.now)

    # -------------------------------------------------------------------------------------------------------- reasons

    def job_valid(self, job: Job) -> UnschedulableReason | None:
        for task in job.by_status.get(TaskStatus.PENDING, {}).values():
            if task.cards is not None and (problem := self._problem(task)):
                return WrongCard(task.key, problem)
        return None

    def _problem(self, task: Task) -> str:
        assert task.cards is not None
        switch, resource = SCHEMES[task.cards.scheme]
        if not self.argument(switch):
            return f"requests {resource}, but the policy's deviceshare does not set {switch}: true"
        return task.cards.problem
