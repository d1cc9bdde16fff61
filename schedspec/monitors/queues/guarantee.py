"""Monitor: no bind uses capacity that is guaranteed to another queue, and reclaim never cuts into a guarantee.

A bind beyond its queue's own guarantee has to leave the guarantees of other queues free. Capacity that was freed for
the pod's job was not free before, so the job may use it in any case. If no preemptor is named, any job may use it, but
only once. An eviction counts against the guarantees of the victim's queue and its ancestors, except those of the
preemptor: they get the capacity back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from .. import amounts
from ..amounts import NONE, Amounts
from ..ledger import Ledger, Monitor
from ..limits import CLUSTER, UnusedGuarantees
from ..lives import Eviction, Pod
from ..rules import Rules


class _Bind(NamedTuple):
    """A bind that uses what is guaranteed to another queue, unless victims of the moment or of its job free enough."""

    pod: Pod
    dimension: str
    left: dict[str, Amounts]
    """Pool → what is free there after the bind."""
    unused: UnusedGuarantees
    """What other queues have unused at the bind."""
    freed: Amounts
    """The amounts that were freed before the bind for the job, or without a named preemptor."""


class _GuaranteeEviction(NamedTuple):
    """An eviction that cuts into a guarantee, unless the queue has as much reserved for its waiting jobs."""

    pod: Pod
    eviction: Eviction
    queue: str
    guarantees: list[Amounts]
    held: Amounts


class GuaranteeMonitor(Monitor):
    """Judges each bind and each eviction by reclaim, at the end of the moment: victims may be written later."""

    NAME = "guarantee"

    def __init__(self, ledger: Ledger, rules: Rules) -> None:
        super().__init__(ledger, rules)
        self._binds: list[_Bind] = []
        self._lacking: set[str] = set()
        """Dimensions of which too little was free at the last bind: each is reported once until enough is free."""
        self._cuts: list[_GuaranteeEviction] = []
        self._unnamed: dict[str, Amounts] = {}
        """Node → what evictions without a named preemptor freed there, and no bind has used."""

    def on_bound(self, pod: Pod) -> None:
        """Compare what is free in the cluster and in each ancestor with the unused guarantees of other queues."""
        ledger, rules = self.ledger, self.rules
        unnamed = self._use_unnamed(pod) if self._unnamed and pod.job.queue else {}
        if not ledger.keeps_guarantees or rules.are_cards_unlimited or not pod.job.queue:
            return
        requested = {name: amount for name, amount in pod.requests.items() if amount > 0 and name != "pods"}
        line, unused = ledger.lineage(pod.job.queue), ledger.unused
        pools = {CLUSTER: ledger.free}
        for name in line[1:]:
            size = ledger.queues[name].capability if name in ledger.queues else {}
            pools[name] = amounts.minus(size, ledger.below(name))
        found: dict[str, str] = {}
        for pool, left in pools.items():
            for dimension, text in _taken(pool, left, line, requested, unused):
                found[dimension] = found.get(dimension, "") or text
        self._lacking -= {dimension for dimension, text in found.items() if not text}
        if short := [dimension for dimension, text in found.items() if text]:
            free, frozen = {pool: {**part} for pool, part in pools.items()}, unused.frozen()
            freed = amounts.total((pod.job.freed, unnamed))
            self._binds += [_Bind(pod, dimension, free, frozen, freed) for dimension in short]

    def _use_unnamed(self, pod: Pod) -> Amounts:
        """Process that a bind uses what was freed on its node; elsewhere, only what it lacks beyond the guarantees.

        Returns:
            What was freed without a named preemptor before the bind.
        """
        self._unnamed = {node: freed for node, freed in self._unnamed.items() if node in self.ledger.nodes}
        before, here = amounts.total(self._unnamed.values()), self._unnamed.get(pod.node, {})
        line, ledger = self.ledger.lineage(pod.job.queue), self.ledger
        for dimension, freed in before.items():
            requested = pod.requests.get(dimension, NONE)
            others = freed - min(here.get(dimension, NONE), requested)
            beyond = _beyond(ledger.free, ledger.unused, line, dimension)
            self._use(pod.node, dimension, freed - max(freed - requested, min(others, beyond), NONE))
        return before

    def _use(self, node: str, dimension: str, amount: Decimal) -> None:
        """Process that this amount is used: of what was freed on a node, and then elsewhere."""
        for name in (node, *(other for other in [*self._unnamed] if other != node)):
            freed = self._unnamed.pop(name, {})
            used = min(amount, freed.get(dimension, NONE))
            amount -= used
            left = amounts.minus(freed, {dimension: used})
            if any(left.values()):
                self._unnamed[name] = left

    def on_evicted(self, pod: Pod, eviction: Eviction) -> None:
        """Compare what the victim's queue and its ancestors hold with their guarantees."""
        ledger = self.ledger
        if not eviction.preemptors and pod.node:
            self._unnamed[pod.node] = amounts.total((self._unnamed.get(pod.node, {}), pod.requests))
        if eviction.action != "reclaim" or not (ledger.keeps_guarantees and self.rules.counts_guarantees):
            return
        preemptors = [ledger.jobs[name] for name in eviction.preemptors if name in ledger.jobs]
        receives = {name for job in preemptors if job.pods for name in ledger.lineage(job.queue)}
        for name in ledger.lineage(pod.job.queue):
            guarantees, held = [spec.guarantee for spec in ledger.lately(name)], ledger.below(name)
            if name not in receives and _short(guarantees, held, pod.requests):
                self._cuts.append(_GuaranteeEviction(pod, eviction, name, guarantees, held))

    def on_moment(self) -> None:
        for bind in self._binds:
            left, unused = self._beside_victims(bind)
            text = self._text(bind, left, unused)
            if not self._was_freed(bind, left[CLUSTER], unused) and text:
                if bind.dimension not in self._lacking:
                    self._lacking.add(bind.dimension)
                    self.find(text, bind.pod)
            else:
                self._lacking.discard(bind.dimension)
        for cut in self._cuts:
            held = amounts.total((cut.held, self._reserved(cut.queue)))
            if short := _short(cut.guarantees, held, cut.pod.requests):
                text = f"its eviction cuts queue {cut.queue} below its guarantee: {', '.join(short)}"
                self.find(text, cut.pod, cut.eviction)
        self._binds.clear()
        self._cuts.clear()

    def _beside_victims(self, bind: _Bind) -> tuple[dict[str, Amounts], UnusedGuarantees]:
        """Return what a bind leaves, and what is unused, if its moment's victims are gone that were written later."""
        gone: dict[str, Amounts] = {}
        for it in self.ledger.victims:
            if it.eviction is not None and it.eviction.number > bind.pod.bound and it is not bind.pod:
                for name in (CLUSTER, *self.ledger.lineage(it.job.queue)):
                    gone[name] = amounts.total((gone.get(name, {}), it.requests))
        left = {
            pool: {name: amount + gone.get(pool, {}).get(name, NONE) for name, amount in free.items()}
            for pool, free in bind.left.items()
        }
        return left, bind.unused.without(gone)

    def _text(self, bind: _Bind, pools: Mapping[str, Amounts], unused: UnusedGuarantees) -> str:
        """Return what a bind uses; empty if it leaves enough."""
        line = self.ledger.lineage(bind.pod.job.queue)
        for pool, left in pools.items():
            for _, text in _taken(pool, left, line, (bind.dimension,), unused):
                if text:
                    return text
        return ""

    def _was_freed(self, bind: _Bind, left: Amounts, unused: UnusedGuarantees) -> bool:
        """Whether as much was freed for the job of a bind, or is reserved for waiting jobs of its queue."""
        later = amounts.total(
            it.requests
            for it in self.ledger.victims
            if it.eviction is not None and it.eviction.number > bind.pod.bound
            and bind.pod.job.key in it.eviction.preemptors
        )  # fmt: skip
        name = bind.dimension
        freed = amounts.total((bind.freed, later, self._reserved(bind.pod.job.queue))).get(name, NONE)
        missing = max(bind.pod.requests[name] - freed, NONE)
        unnamed = amounts.total(self._unnamed.values()).get(name, NONE)  # with victims that were written later
        beyond = _beyond(left, unused, self.ledger.lineage(bind.pod.job.queue), name)
        self._use(bind.pod.node, name, unnamed - max(unnamed - missing, min(unnamed, beyond), NONE))
        return missing <= unnamed

    def _reserved(self, queue: str) -> Amounts:
        """Return the capacity of evicted pods that the scheduler reserves for waiting jobs of a queue."""
        return amounts.total(
            amounts.at_most(job.freed, amounts.total(pod.requests for pod in job.waiting.values()))
            for job in self.ledger.jobs.values()
            if job.freed and job.waiting and queue in self.ledger.lineage(job.queue)
        )


def _beyond(free: Amounts, unused: UnusedGuarantees, line: Sequence[str], dimension: str) -> Decimal:
    return free.get(dimension, NONE) - sum(unused.beside(line, dimension).values(), NONE)


def _taken(
    pool: str, left: Amounts, line: Sequence[str], requested: Collection[str], unused: UnusedGuarantees
) -> Iterable[tuple[str, str]]:
    """Yield whether a bind leaves too little for the unused guarantees of other queues: a dimension and a text.

    The text is empty if enough is left. Dimensions in which other queues have no unused guarantee are absent.

    `pool`: the cluster or an ancestor of the queue. `left`: what is free there after the bind.
    """
    for dimension in (name for name in requested if name in left):
        others = unused.beside(line[: line.index(pool)] if pool else line, dimension)
        if others:
            largest = min(others, key=lambda name: (-others[name], name))
            is_short = sum(others.values()) > left[dimension]
            yield dimension, f"uses {dimension} that is guaranteed to queue {largest}" if is_short else ""


def _short(guarantees: Iterable[Amounts], held: Amounts, evicted: Amounts) -> list[str]:
    """Return in what an eviction cuts into each guarantee that may have been valid; empty if it does not cut all."""
    short = [
        [name for name, amount in guaranteed.items() if evicted.get(name, NONE) > 0 and held.get(name, NONE) < amount]
        for guaranteed in guarantees
    ]
    return short[0] if short and all(short) else []
