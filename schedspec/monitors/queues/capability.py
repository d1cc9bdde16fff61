"""Monitor: no bind lifts a queue or one of its ancestors above its capability or its quota of cards."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from ...api.kinds import Kind
from .. import amounts
from ..amounts import NONE, Amounts, Object
from ..ledger import Act, Ledger, Violation
from ..object_state import is_leaving
from ..rules import Rules
from . import usage

NAME = "capability"


def judge(ledger: Ledger, rules: Rules) -> Iterator[Violation]:
    """Yield violations: binds that exceed the limit of every version of a queue that was valid in the last second."""
    if not rules.queue_plugin:
        return
    unlimited = rules.are_cards_unlimited

    def counts(pod: Object, evicted: Collection[str] = ()) -> bool:
        return not (unlimited and _card(pod)) and pod["metadata"]["uid"] not in evicted

    for act in ledger.binds():
        queue = ledger.queue_of(act.position, act.pod)
        evicted = usage.evicted_with(ledger, act)
        uids = {pod["metadata"]["uid"] for pod in evicted}  # these pods have freed their quota
        requested = {n: v for n, v in act.amounts.items() if v > 0 and n != "pods"}
        if rules.queue_plugin == "capacity-card":
            yield from _cards(ledger, act, queue)
            if not counts(act.pod):
                continue
            requested = usage.without_cards(requested)
        candidates = ledger.holding(act.position) if unlimited else evicted
        left_out = [pod for pod in candidates if not counts(pod, uids)]
        for name in usage.lineage(ledger, act.position, queue, rules):
            held = usage.held_below(ledger, act.position, name, rules, left_out)
            limits = [usage.capability(v, rules) for v in ledger.lately(act.position, Kind.QUEUE, name)]
            if text := lifted(name, held, limits, requested):
                yield act.violation(NAME, text)


def lifted(queue: str, held: Amounts, limits: Iterable[Amounts], requested: Amounts) -> str:
    """Return how a bind exceeds each of a queue's limits that may have been valid; empty if it exceeds not all."""
    over = [amounts.above(held, limit, requested) for limit in limits]
    return f"lifts queue {queue} to {', '.join(over[0])} of its capability" if over and all(over) else ""


def _card(pod: Object) -> str:
    return str((pod["metadata"].get("annotations") or {}).get("volcano.sh/card.name", ""))


def _cards(ledger: Ledger, act: Act, queue: str) -> Iterator[Violation]:
    if not _card(act.pod):
        return
    held: Amounts = {}
    for pod in ledger.holding(act.position):
        if _card(pod) and not is_leaving(pod) and ledger.queue_of(act.position, pod) == queue:
            model = _model(ledger, act.position, pod)
            count = sum((v for n, v in amounts.of_pod(pod).items() if "/" in n), NONE)
            held[model] = held.get(model, NONE) + count
    own = {_model(ledger, act.position, act.pod): NONE}  # a quota of another model may have been lowered
    over = [amounts.above(held, usage.card_quota(v), own) for v in ledger.lately(act.position, Kind.QUEUE, queue)]
    if over and all(over):
        text = f"lifts queue {queue} to {', '.join(over[0])} of its quota of cards"
        yield act.violation(NAME, text)


def _model(ledger: Ledger, position: int, pod: Object) -> str:
    """Return the model of the cards that a pod got: the model of the pod's node, whatever the pod requested."""
    wanted = _card(pod).split("|")
    node = ledger.at(position, Kind.NODE, str(pod["spec"]["nodeName"])) or {"metadata": {}}
    has = {v for k, v in (node["metadata"].get("labels") or {}).items() if k.endswith(".product")}
    return next((name for name in wanted if name in has), min(has, default=wanted[0]))
