"""Decide for whom a pod was evicted, from what names the preemptor and from what shows it.

1. The victim's condition names the preemptor (schedspec, Kueue). Only schedulers may write the status of a pod.
2. An event names it (kube-scheduler, by a uid). Anyone who may create events in the victim's namespace can write such
   an event, because the API server does not check who reports it. So this name is a claim.
3. The recording shows it: a pod that waited at the eviction is nominated for the victim's node (a status, too), or
   else is the next pod of another group that is bound there within a minute.

The one rule: a claim counts only where the recording shows the same. Where the recording shows another preemptor, that
one is inferred, and the claim is contradicted. Where it shows nobody, the claim stays a claim: no finding uses it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

from ...monitors import Ledger
from ...monitors.ledger import Monitor
from ...monitors.lives import Pod
from ...monitors.reading import key_of
from ...observe import view
from ...observe.history import Object
from ...report.course import Act

NEXT = 60.0
"""Seconds after an eviction in which its preemptor, if it is to be inferred, is nominated or bound."""
KEPT = 3 * NEXT
"""Seconds for which ended pods and claims are kept: until the preemptors of their time are decided."""
_FRESH = 5.0
"""Seconds before an eviction from which on a nomination may be of the same decision."""
_BY_POD = re.compile(r"\bby pod ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b")
"""kube-scheduler's event of a victim, which core/v1 serves without `related`."""
_MOST_CLAIMS = 4
"""Maximum number of different claims about one victim that are kept."""
_LONGEST = 320
"""More characters than the name of a pod with its namespace can have."""
_Timed = TypeVar("_Timed", bound=tuple[float, object])


class Preemptor(NamedTuple):
    """For whom a pod was evicted, and how that is known."""

    name: str = ""
    """Key of the pod, or of its job if no pod is named; empty if the preemptor is unknown."""
    job: str = ""
    uid: str = ""
    """Uid of the pod, if it is known."""
    evidence: str = ""
    """How the preemptor is known; empty if the victim's condition names it."""
    is_inferred: bool = False
    is_claim: bool = False
    """Whether only an event names it."""
    contradiction: str = ""
    """The claims that do not hold, in a sentence."""


class _Claim(NamedTuple):
    """The pod that an event names as the preemptor, by its key, its uid, or both."""

    key: str
    uid: str

    @classmethod
    def of(cls, event: Object) -> _Claim | None:
        related = event.get("related") or {}
        by_pod = _BY_POD.search(str(event.get("message") or ""))
        key = f"{related.get('namespace')}/{related['name']}" if related.get("name") else ""
        uid = str(related.get("uid") or (by_pod[1] if by_pod and not key else ""))
        return cls(key[:_LONGEST], uid[:_LONGEST]) if key or uid else None

    def is_of(self, pod: Pod) -> bool:
        return pod.uid == self.uid if self.uid else pod.key == self.key


class _Nomination(NamedTuple):
    at: float
    uid: str
    key: str
    node: str


class PreemptorLog(Monitor):
    """Keeps what decides about the preemptors of the last minutes: pods that ended, nominations and claims."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger, ledger.rules)
        self.claims: dict[str, tuple[float, list[_Claim]]] = {}
        """Uid of a victim → time of the last event that names a preemptor, and the claims; the oldest first."""
        self._ended: dict[str, tuple[float, Pod]] = {}
        """Uid of a pod → time of its end, and the pod; the oldest first."""
        self._nominated: dict[str, _Nomination] = {}
        """Uid of a pod → its last nomination."""

    def before(self, pod: Pod, what: str) -> None:
        if what == "end":
            self._ended[pod.uid] = self.ledger.at, pod
            forget_old(self._ended, self.ledger.at)

    def note_pod(self, at: float, pod: Object) -> None:
        """Note a version of a pod."""
        node, uid = (pod.get("status") or {}).get("nominatedNodeName"), str(pod["metadata"].get("uid"))
        if node and not pod["spec"].get("nodeName"):
            known = self._nominated.get(uid)
            if known is None or known.node != node:
                self._nominated[uid] = _Nomination(at, uid, key_of(pod), str(node))

    def note_event(self, at: float, event: Object) -> None:
        """Note an event, if it names the preemptor of a pod."""
        victim, claim = str((event.get("involvedObject") or {}).get("uid") or ""), _Claim.of(event)
        if not victim or claim is None:
            return
        _, known = self.claims.pop(victim, (at, list[_Claim]()))
        if claim not in known and len(known) < _MOST_CLAIMS:
            known.append(claim)
        self.claims[victim] = at, known
        forget_old(self.claims, at)

    def forget(self, at: float) -> None:
        """Forget the old nominations of pods that no longer wait."""
        live = {pod.uid for it in self._nominated.values() if (pod := self.ledger.pods.get(it.key)) and not pod.node}
        self._nominated = {uid: it for uid, it in self._nominated.items() if it.at >= at - KEPT or uid in live}

    def preemptor(self, act: Act, named: str, bound: Object | None) -> Preemptor:
        """Return the preemptor of an eviction.

        Args:
            act: The eviction.
            named: The job that the victim's condition names, if any.
            bound: The next pod of another group that was bound to the victim's node, if any.
        """
        claims = self.claims.get(act.uid, (0.0, ()))[1]
        shown = [*self._shown(act, bound)]
        if named:
            return self._of_condition(act, named, claims, shown)
        pod, how = next(((pod, how) for pod, how in shown if _is_claimed(pod, claims)), (None, ""))
        if pod is not None:
            return self._found(act, pod, claims, f"named by an event, and {how}")
        if shown:
            pod, how = shown[0]
            return self._found(act, pod, claims, f"inferred: its pod was {how}")._replace(is_inferred=True)
        waited = {pod.uid: pod for claim in claims if (pod := self._pod(claim)) and self._waited(pod, act)}
        if len(waited) == 1:
            [pod] = waited.values()
            evidence = f"only named by an event, which {_anyone(act)} can write"
            return self._found(act, pod, claims, evidence)._replace(is_claim=True)
        return Preemptor(contradiction=self._contradiction(act, claims, "which waited as well"))

    def _found(self, act: Act, pod: Pod, claims: Sequence[_Claim], evidence: str) -> Preemptor:
        job, instead = _job_of(pod), f"which was neither nominated for {act.node} nor the next one bound there"
        return Preemptor(pod.key, job, pod.uid, evidence, contradiction=self._contradiction(act, claims, instead, job))

    def _of_condition(
        self, act: Act, named: str, claims: Sequence[_Claim], shown: Sequence[tuple[Pod, str]]
    ) -> Preemptor:
        """Return the preemptor that the victim's condition names, with its pod if an event names one of it."""
        pods = [pod for claim in claims if (pod := self._pod(claim)) is not None and _job_of(pod) == named]
        uids = [pod.uid for pod in (*pods, *(pod for pod, _ in shown)) if _job_of(pod) == named]
        name = pods[0].key if pods else named
        wrong = self._contradiction(act, claims, f"but the victim's condition names {named}", named)
        return Preemptor(name, named, next(iter(uids), ""), contradiction=wrong)

    def _shown(self, act: Act, bound: Object | None) -> Iterator[tuple[Pod, str]]:
        """Yield the pods that the recording shows as the preemptor of an eviction, the most likely first."""
        own, fresh, older = view.group_of(act.pod), list[tuple[float, Pod]](), list[tuple[float, Pod]]()
        for it in self._nominated.values():
            pod = self._pod(_Claim(it.key, it.uid)) if it.node == act.node and it.at <= act.at + NEXT else None
            is_other = pod is not None and (not own or view.group_of(self.ledger.shown(pod.source)) != own)
            if pod is not None and is_other and self._waited(pod, act):
                (fresh if it.at >= act.at - _FRESH else older).append((abs(it.at - act.at), pod))
        for _, pod in sorted(fresh, key=lambda pair: pair[0]):
            yield pod, f"nominated for {act.node}"
        if bound is not None and not fresh:
            pod = self._pod(_Claim("", str(bound["metadata"].get("uid"))))
            if pod is not None:
                yield pod, "the next one bound there"
        for _, pod in sorted(older, key=lambda pair: pair[0]):
            yield pod, f"nominated for {act.node}"

    def _pod(self, claim: _Claim) -> Pod | None:
        """Return a pod that lives or ended lately."""
        if claim.uid in self._ended:
            return self._ended[claim.uid][1]
        lives = self.ledger.pods.get(claim.key)
        if lives is not None and claim.is_of(lives):
            return lives
        if claim.uid:
            return next((pod for pod in self.ledger.pods.values() if pod.uid == claim.uid), None)
        return next((pod for _, pod in reversed(self._ended.values()) if pod.key == claim.key), None)

    def _waited(self, pod: Pod, act: Act) -> bool:
        return not self._refutation(pod, act)

    def _refutation(self, pod: Pod | None, act: Act) -> str:
        """Return why a pod did not wait when another one was evicted; empty if it waited."""
        assert act.eviction is not None
        number = act.eviction.number
        if pod is None:
            return "of which the recording has no pod"
        if pod.created > number:
            return "which did not exist yet"
        if 0 < pod.bound < number:
            return f"which was bound to {pod.node} before"
        if pod.uid in self._ended and self._ended[pod.uid][0] < act.at:
            return "which had ended before"
        return ""

    def _contradiction(self, act: Act, claims: Sequence[_Claim], instead: str, job: str = "") -> str:
        """Return the claims that do not hold: about others than the preemptor's job, with the reason."""
        wrong = []
        for claim in claims:
            pod = self._pod(claim)
            if pod is None or _job_of(pod) != job:
                name = pod.key if pod is not None else claim.key or claim.uid
                wrong.append(f"{name}, {self._refutation(pod, act) or instead}")
        return f"An event, which {_anyone(act)} can write, names {'; another one '.join(wrong)}." if wrong else ""


def _is_claimed(pod: Pod, claims: Sequence[_Claim]) -> bool:
    return any(claim.is_of(pod) for claim in claims)


def _job_of(pod: Pod) -> str:
    return pod.job.key or pod.key


def _anyone(act: Act) -> str:
    return f"anyone who may create events in {act.pod['metadata'].get('namespace')}"


def forget_old(kept: dict[str, _Timed], at: float) -> None:
    """Forget what is too old; the oldest comes first."""
    while kept and next(iter(kept.values()))[0] < at - KEPT:
        del kept[next(iter(kept))]
