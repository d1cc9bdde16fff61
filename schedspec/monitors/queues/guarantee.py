"""Monitor: no bind uses capacity that is guaranteed to another queue, and reclaim never cuts into a guarantee.

A bind beyond its queue's own guarantee has to leave the guarantees of other queues free. Capacity that was freed for
the pod's job was not free before, so the job may use it in any case. An eviction counts against the guarantees of the
victim's queue and its ancestors, except those of the preemptor: they get the capacity back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from .. import amounts
from ..amounts import NONE, Amounts
from ..ledger import Ledger, Monitor
from ..limits import CLUSTER, UnusedGuarantees, without_cards
from ..lives import Eviction, Pod
from ..rules import CARD_PLUGIN, Rules


class _Bind(NamedTuple):
    """A bind that uses what is guaranteed to another queue, unless victims of the moment or of its job free enough."""

    pod: Pod
    dimension: str
    left: dict[str, Amounts]
    """Pool → what is free there after the bind."""
    unused: UnusedGuarantees
    """What other queues have unused at the bind."""
    freed: Amounts
    """What was freed for the job before the bind."""


class _Cut(NamedTuple):
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
        self._cuts: list[_Cut] = []
        self._has_cards = rules.queue_plugin == CARD_PLUGIN

    def on_bound(self, pod: Pod) -> None:
        """Compare what is free in the cluster and in each ancestor with the unused guarantees of other queues."""
        ledger, rules = self.ledger, self.rules
        if not (ledger.keeps_guarantees or self._has_cards) or not pod.job.queue:
            return
        requested = {name: amount for name, amount in pod.requests.items() if amount > 0 and name != "pods"}
        if self._has_cards:  # a card is no dimension of its quotas
            requested = {} if rules.are_cards_unlimited else without_cards(requested)
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
            self._binds += [_Bind(pod, dimension, free, frozen, self._freed(pod)) for dimension in short]

    def _freed(self, pod: Pod) -> Amounts:
        """Return what was freed for a pod's job and not used yet; what names no preemptor may be for any job."""
        before = amounts.minus(pod.job.taken, pod.requests) if pod.job.taken else {}
        unnamed = {name: max(amount - before.get(name, NONE), NONE) for name, amount in self.ledger.unnamed.items()}
        return amounts.total((pod.job.freed, unnamed))

    def on_evicted(self, pod: Pod, eviction: Eviction) -> None:
        """Compare what the victim's queue and its ancestors hold with their guarantees."""
        ledger = self.ledger
        if eviction.action != "reclaim" or not ledger.keeps_guarantees:
            return
        preemptors = [ledger.jobs[name] for name in eviction.preemptors if name in ledger.jobs]
        receives = {name for job in preemptors if job.pods for name in ledger.lineage(job.queue)}
        for name in ledger.lineage(pod.job.queue):
            guarantees, held = [spec.guarantee for spec in ledger.lately(name)], ledger.below(name)
            if name not in receives and _short(guarantees, held, pod.requests):
                self._cuts.append(_Cut(pod, eviction, name, guarantees, held))

    def on_moment(self) -> None:
        """Judge the acts of the moment."""
        for bind in self._binds:
            text = self._text(bind)
            if not text or self._was_freed(bind):
                self._lacking.discard(bind.dimension)
            elif bind.dimension not in self._lacking:
                self._lacking.add(bind.dimension)
                self.find(text, bind.pod)
        for cut in self._cuts:
            held = amounts.total((cut.held, self._reserved(cut.queue)))
            if short := _short(cut.guarantees, held, cut.pod.requests):
                text = f"its eviction cuts queue {cut.queue} below its guarantee: {', '.join(short)}"
                self.find(text, cut.pod, cut.eviction)
        self._binds.clear()
        self._cuts.clear()

    def _text(self, bind: _Bind) -> str:
        """Return what a bind uses; empty if its moment's victims, whose eviction may be written later, free enough."""
        line = self.ledger.lineage(bind.pod.job.queue)
        gone: dict[str, Amounts] = {}
        for it in self.ledger.victims:
            if it.eviction is not None and it.eviction.number > bind.pod.bound and it is not bind.pod:
                for name in (CLUSTER, *self.ledger.lineage(it.job.queue)):
                    gone[name] = amounts.total((gone.get(name, {}), it.requests))
        unused = bind.unused.without(gone)
        for pool, free in bind.left.items():
            left = {name: amount + gone.get(pool, {}).get(name, NONE) for name, amount in free.items()}
            for _, text in _taken(pool, left, line, (bind.dimension,), unused):
                if text:
                    return text
        return ""

    def _was_freed(self, bind: _Bind) -> bool:
        """Whether as much was freed for the job of a bind, or is reserved for waiting jobs of its queue."""
        later = amounts.total(
            it.requests
            for it in self.ledger.victims
            if it.eviction is not None and it.eviction.number > bind.pod.bound
            and (bind.pod.job.key in it.eviction.preemptors or not it.eviction.preemptors)
        )  # fmt: skip
        freed = amounts.total((bind.freed, later, self._reserved(bind.pod.job.queue)))
        return bind.pod.requests[bind.dimension] <= freed.get(bind.dimension, NONE)

    def _reserved(self, queue: str) -> Amounts:
        """Return the capacity of evicted pods that the scheduler reserves for waiting jobs of a queue."""
        return amounts.total(
            amounts.at_most(job.freed, amounts.total(pod.requests for pod in job.waiting.values()))
            for job in self.ledger.jobs.values()
            if job.freed and job.waiting and queue in self.ledger.lineage(job.queue)
        )


def _taken(
    pool: str, left: Amounts, line: Sequence[str], requested: Collection[str], unused: UnusedGuarantees
) -> Iterable[tuple[str, str]]:
    """Yield whether a bind leaves too little for the unused guarantees of other queues: a dimension and a text.

    The text is empty if enough is left. Dimensions in which other queues have no unused guarantee are absent.

    Args:
        pool: The cluster or an ancestor of the queue.
        left: What is free there after the bind.
        line: The queue and its ancestors, the queue first.
        requested: The dimensions.
        unused: The unused guarantees.
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
