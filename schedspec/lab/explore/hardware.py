"""Draw special hardware, which only some policies know: cards with quotas by model, shared cards, and racks.

A case has at most one kind of special hardware. A variant of a case keeps the kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random

from ...scheduler.lint import unread_settings
from ...scheduler.model.resources import MEMORY
from ..reduce import case as cases
from .vocabulary import Vocabulary

PLAIN, QUOTAS, SHARED, RACKS = "plain", "quotas", "shared", "racks"
_PLUGINS = {QUOTAS: "capacity-card", SHARED: "deviceshare.GPUSharingEnable", RACKS: "network-topology-aware"}
"""Kind of hardware → a text that every policy for this hardware contains."""
_MODELS = ("NVIDIA-A100", "NVIDIA-L40")
_RACKS = ("rack-a", "rack-a", "rack-b", "rack-b", "rack-c")
_GIBIBYTES = 4
"""GiB in one unit of card memory, as cases draw it."""
_PART = _GIBIBYTES * 1024 * 1000


def draw_kind(random: Random, policies: Mapping[str, str], may: Vocabulary) -> str:
    """Draw the kind of hardware of a new case: about one of four cases has special hardware."""
    known = {QUOTAS: may.has_card_quotas, SHARED: may.has_shared_cards, RACKS: may.has_racks}
    kind = random.choice((PLAIN,) * 9 + (QUOTAS, SHARED, RACKS))
    return kind if known.get(kind) and policies_for(policies, kind) else PLAIN


def kind_of(case: cases.Case) -> str:
    for node in case.all_nodes:
        if node.card or node.rack:
            return QUOTAS if node.card else RACKS
        if cases.CARDS in dict(node.has):
            return SHARED
    return PLAIN


def policies_for(policies: Mapping[str, str], kind: str) -> dict[str, str]:
    """Return the policies for a kind of hardware; all policies for plain hardware."""
    return {name: text for name, text in policies.items() if _PLUGINS.get(kind, "") in text}


def space_of(kind: str) -> tuple[str, ...]:
    """Return the dimensions that work on this hardware requests."""
    return {QUOTAS: (cases.GPU,), SHARED: (cases.CARD_MEMORY,)}.get(kind, ("cpu",))


def unit_of(dimension: str) -> int:
    return {cases.CARD_MEMORY: _PART, MEMORY: 1 << 30}.get(dimension, 1000)


def fit_node(random: Random, kind: str, node: cases.CaseNode) -> cases.CaseNode:
    if kind == SHARED:
        cards, parts = random.choice((1, 2, 2, 3)), random.choice((2, 4, 6))
        return replace(
            node, has=cases.amounts(((cases.CARDS, cards * 1000), (cases.CARD_MEMORY, cards * parts * _PART)))
        )
    if kind == QUOTAS:
        return replace(node, card=random.choice(_MODELS))
    return replace(node, rack=random.choice(_RACKS)) if kind == RACKS else node


def fit_work(random: Random, kind: str, work: cases.Work, nodes: tuple[cases.CaseNode, ...]) -> cases.Work:
    """Return work that requests this hardware; with quotas, services too."""
    if kind == QUOTAS:
        is_service = random.random() < 0.4
        return replace(
            work, card=random.choice(nodes).card, is_service=is_service, minimum=1 if is_service else work.minimum
        )
    if kind == RACKS:
        return replace(work, rack=random.choice(("", cases.REQUIRED, cases.REQUIRED, cases.PREFERRED, cases.PREFERRED)))
    return work


def fit_queue(random: Random, kind: str, queue: cases.CaseQueue, nodes: tuple[cases.CaseNode, ...]) -> cases.CaseQueue:
    if kind != QUOTAS:
        return queue
    return replace(queue, capability=(), deserved=(), guarantee=(), cards=_quota(random, nodes))


def fitted(case: cases.Case) -> cases.Case:
    """Return the case without what no feature can have: models of no node, services that fail, levels nothing reads."""
    if kind_of(case) == RACKS and "required" in unread_settings(case.policy):
        return cases.map_work(case, {job.name: replace(job, rack="") for job in case.jobs})
    missing, failed = cases.missing_models(case), case.failed
    if kind_of(case) != QUOTAS or not (missing or any(job.is_service and job.name in failed for job in case.jobs)):
        return case
    first = next(node.card for node in case.all_nodes if node.card)

    def work(job: cases.Work) -> cases.Work:
        is_service = job.is_service and job.name not in failed
        return replace(job, card=first if job.card in missing else job.card, is_service=is_service)

    def queue(given: cases.CaseQueue) -> cases.CaseQueue:
        return replace(given, cards=tuple((model, number) for model, number in given.cards if model not in missing))

    changed = cases.map_queues(
        cases.map_work(case, {job.name: work(job) for job in case.jobs}), {one.name: queue(one) for one in case.queues}
    )
    steps = (
        cases.ChangeStep(queue(step.queue)) if isinstance(step, cases.ChangeStep) else step for step in changed.steps
    )
    return replace(changed, steps=tuple(steps))


def _quota(random: Random, nodes: tuple[cases.CaseNode, ...]) -> cases.Amounts:
    """Return a quota for each model of the nodes: in most cases all cards of the model."""
    total: dict[str, int] = {}
    for node in nodes:
        total[node.card] = total.get(node.card, 0) + dict(node.has)[cases.GPU] // 1000
    share = ((model, most if random.random() < 0.6 else random.randint(1, most)) for model, most in total.items())
    return cases.amounts((model, number * 1000) for model, number in share)
