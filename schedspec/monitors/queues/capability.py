"""Monitor: no bind lifts a queue or one of its ancestors above its capability or its quota of cards."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .. import amounts
from ..amounts import NONE, Amounts
from ..ledger import Ledger, Monitor
from ..limits import without_cards
from ..lives import Pod
from ..rules import CARD_PLUGIN, Rules


class _Bind(NamedTuple):
    """A bind that lifts a queue above its limits, unless pods that were evicted in the same moment are left out."""

    pod: Pod
    queue: str
    held: Amounts
    limits: list[Amounts]
    requested: Amounts


class CapabilityMonitor(Monitor):
    """Judges each bind by the limits of all specs of a queue that were valid in the last second."""

    NAME = "capability"

    def __init__(self, ledger: Ledger, rules: Rules) -> None:
        super().__init__(ledger, rules)
        self._suspects: list[_Bind] = []
        self._has_cards = rules.queue_plugin == CARD_PLUGIN

    def on_bound(self, pod: Pod) -> None:
        if not self.rules.queue_plugin:
            return
        requested = {name: amount for name, amount in pod.requests.items() if amount > 0 and name != "pods"}
        if self._has_cards:
            self._judge_cards(pod)
            if not self._counts(pod):
                return
            requested = without_cards(requested)
        for name in self.ledger.lineage(pod.job.queue):
            limits, held = [spec.capability for spec in self.ledger.lately(name)], self._held(name)
            if _lifted(name, held, limits, requested):
                self._suspects.append(_Bind(pod, name, held, limits, requested))

    def on_moment(self) -> None:
        """Judge the suspects: victims have freed their quota, even if their eviction was written later."""
        for bind in self._suspects:
            victims = [
                it.requests
                for it in self.ledger.victims
                if it.eviction is not None and it.eviction.number > bind.pod.bound and self._counts(it)
                and it is not bind.pod and bind.queue in self.ledger.lineage(it.job.queue)
            ]  # fmt: skip
            held = amounts.minus(bind.held, amounts.total(victims))
            if text := _lifted(bind.queue, held, bind.limits, bind.requested):
                self.find(f"{text} of its capability", bind.pod)
        self._suspects.clear()

    def _counts(self, pod: Pod) -> bool:
        return not (self.rules.are_cards_unlimited and self._card(pod))

    def _held(self, queue: str) -> Amounts:
        held = self.ledger.below(queue)
        if not self.rules.are_cards_unlimited:
            return held
        pods = (it for it in self.ledger.pods.values() if it.keeps and queue in self.ledger.lineage(it.job.queue))
        return amounts.minus(held, amounts.total(it.requests for it in pods if not self._counts(it)))

    def _judge_cards(self, pod: Pod) -> None:
        if not self._card(pod):
            return
        held: Amounts = {}
        for other in self.ledger.pods.values():
            if other.keeps and other.job.queue == pod.job.queue and self._card(other):
                model, count = self._model(other), sum((v for n, v in other.requests.items() if "/" in n), NONE)
                held[model] = held.get(model, NONE) + count
        own = {self._model(pod): NONE}  # a quota of another model may have been lowered
        quotas = [spec.cards for spec in self.ledger.lately(pod.job.queue)]
        if text := _lifted(pod.job.queue, held, quotas, own):
            self.find(f"{text} of its quota of cards", pod)

    def _card(self, pod: Pod) -> str:
        metadata = self.ledger.shown(pod.source)["metadata"]
        return str((metadata.get("annotations") or {}).get("volcano.sh/card.name", ""))

    def _model(self, pod: Pod) -> str:
        """Return the model of the cards that a pod got: the model of the pod's node, whatever the pod requested."""
        wanted = self._card(pod).split("|")
        node = self.ledger.nodes.get(pod.node) or {"metadata": {}}
        has = {v for k, v in (node["metadata"].get("labels") or {}).items() if k.endswith(".product")}
        return next((name for name in wanted if name in has), min(has, default=wanted[0]))


def _lifted(queue: str, held: Amounts, limits: Sequence[Amounts], requested: Iterable[str]) -> str:
    """Return how a bind exceeds each of a queue's limits that may have been valid; empty if it exceeds not all."""
    over = [amounts.above(held, limit, requested) for limit in limits]
    return f"lifts queue {queue} to {', '.join(over[0])}" if over and all(over) else ""
