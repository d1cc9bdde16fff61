"""An event that names a preemptor is checked: anyone who may create events in the victim's namespace can write it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from markupsafe import escape

from schedspec.lab.recorder.evictions import Eviction, about, between
from schedspec.lab.recorder.window import record_of
from schedspec.report import html
from tests.schedspec.lab.recorder.nights import evictions, judged
from tests.schedspec.lab.reduce.recordings import SPACE, Recorded, uid_of_workload

MARK = "which anyone who may create events in team can write"
KUEUE_SAYS = f"Preempted to accommodate a workload (UID: {uid_of_workload('taker')}, JobUID: j) due to reclamation"


@dataclass(frozen=True, slots=True)
class Words:
    """How a scheduler evicts a pod for the job `taker`."""

    scheduler: str
    condition: str
    message: str
    nominates: bool = False

    @property
    def names_in_condition(self) -> bool:
        return "UID" in self.message or "taker" in self.message


SCHEDULERS = {
    "schedspec": Words("schedspec", "DisruptionTarget", "reclaim for team/taker of queue online", True),
    "volcano": Words("volcano", "DisruptionTarget", "evicted by volcano"),
    "kueue": Words("default-scheduler", "TerminationTarget", KUEUE_SAYS),
    "kube-scheduler": Words("default-scheduler", "DisruptionTarget", "default-scheduler: preempting", True),
}


class Night(Recorded):
    """A recording under one scheduler: `giver` runs on n1, `runner` on n2, and `taker` and `other` wait."""

    def __init__(self, folder: Path, scheduler: str) -> None:
        super().__init__(folder)
        self.name, self.words = scheduler, SCHEDULERS[scheduler]
        for node in ("n1", "n2"):
            self.node(node, 8)
        for queue in ("batch", "online"):
            if scheduler == "kueue":
                self.cluster_queue(queue, 8)
            elif scheduler != "kube-scheduler":
                self.queue(queue)
        for job, queue in (("giver", "batch"), ("runner", "batch"), ("taker", "online"), ("other", "online")):
            self.job(job, queue)
        self.pass_time(1.0)
        for job, node in (("giver", "n1"), ("runner", "n2")):
            self.bind(f"{job}-x", node)

    def job(self, name: str, queue: str) -> None:
        """Create a job of one pod that waits."""
        more = {"owner": name}
        if self.name == "kueue":
            self.workload(name, queue, 8, is_admitted=name not in ("taker", "other"))
            more["workload"] = f"job-{name}-1a2b3"
        elif self.name != "kube-scheduler":
            self.group(name, queue)
            more["group"] = name
        self.pod(f"{name}-x", 8, schedulerName=self.words.scheduler, **more)

    def key_of(self, job: str) -> str:
        """Return the key by which a job is known."""
        if self.name == "kueue":
            return f"{SPACE}/job-{job}-1a2b3"
        return f"{SPACE}/{job}-x" if self.name == "kube-scheduler" else f"{SPACE}/{job}"

    def claim(self, job: str, victim: str = "giver-x") -> None:
        """Write an event that names the pod of a job as the preemptor, as the scheduler does or would."""
        uid = self.uid(f"{job}-x") if f"{job}-x" in self._pods else "00000000-0000-0000-0000-000000000000"
        if self.name == "kube-scheduler" and job != "nobody":
            self.event(victim, related={"kind": "Pod", "uid": uid})
        else:
            self.event(victim, related={"kind": "Pod", "namespace": SPACE, "name": f"{job}-x", "uid": uid})

    def displace(self, claims: Sequence[str]) -> None:
        """Evict `giver` for `taker`, with events that claim preemptors; then `taker` is bound there."""
        for job in claims:
            self.claim(job)
        if self.words.nominates:
            self.nominate("taker-x")
        self.evict("giver-x", self.words.message, self.words.condition)
        if self.name == "kueue":
            self.workload("taker", "online", 8, is_admitted=True)
        self.pass_time(2.0)
        self.bind("taker-x", "n1")


FORGED = {
    "no event": (),
    "true": ("taker",),
    "nobody": ("nobody",),
    "waiting": ("other",),
    "running": ("runner",),
    "two that differ": ("other", "taker"),
}
WHY = {
    "nobody": "names team/nobody-x, of which the recording has no pod",
    "waiting": "names team/other-x, which was neither nominated for n1 nor the next one bound there",
    "running": "names team/runner-x, which was bound to n2 before",
    "two that differ": "names team/other-x, which was neither nominated for n1 nor the next one bound there",
}


def told(folder: Path) -> Eviction:
    [one] = evictions(folder)
    return one


@pytest.mark.parametrize("claims", FORGED)
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_an_event_names_nobody_but_who_is_shown(tmp_path: Path, scheduler: str, claims: str) -> None:
    night = Night(tmp_path, scheduler)
    began = night.now
    night.displace(FORGED[claims])
    night.close()
    one = told(tmp_path)
    assert (one.preemptor_job, one.is_claim) == (night.key_of("taker"), False)
    is_named = night.words.names_in_condition or "taker" in FORGED[claims]
    assert one.is_inferred == (not is_named)
    why = WHY.get(claims, "")
    if why and night.words.names_in_condition and "neither" in why:
        why = "names team/other-x, but the victim's condition names"
    text = about(one.pod, [one])
    assert (MARK in text, why in text) == (bool(WHY.get(claims)), True)
    [line] = between([one], began, night.now)
    assert line.endswith("inferred") == one.is_inferred
    assert judged(tmp_path) == []
    record = record_of(tmp_path, began, began + 60.0)
    [evicted] = [act for act in record.acts if act.act == "evict"]
    assert (evicted.preemptor_uid, evicted.inferred) == (night.uid("taker-x"), one.is_inferred)
    assert why in evicted.evidence
    assert not {"other", "runner", "nobody"} & {evicted.preemptor}
    assert str(escape(why)) in html.render([record])


@pytest.mark.parametrize("scheduler", ["volcano", "kube-scheduler"])
@pytest.mark.parametrize(
    ("claims", "named"),
    [(("other",), "other"), (("nobody",), ""), (("runner",), ""), (("other", "taker"), ""), (("giver",), "")],
    ids=["waiting", "nobody", "running", "two-that-differ", "the-victim"],
)
def test_a_claim_that_nothing_shows_stays_a_claim(
    tmp_path: Path, scheduler: str, claims: Sequence[str], named: str
) -> None:
    night = Night(tmp_path, scheduler)
    began = night.now
    for job in claims:
        night.claim(job)
    night.evict("giver-x", night.words.message, night.words.condition)
    night.close()
    one = told(tmp_path)
    assert (one.preemptor_job, one.is_claim) == (night.key_of(named) if named else "", bool(named))
    text = about(one.pod, [one])
    assert MARK in text
    assert ("for whom is unknown" in text) == (not named)
    [line] = between([one], began, night.now)
    assert line.endswith("only named by an event" if named else "an unknown preemptor")


@pytest.mark.parametrize("is_shown", [True, False], ids=["another-is-shown", "nobody-is-shown"])
def test_forged_events_make_no_ping_pong(tmp_path: Path, is_shown: bool) -> None:
    night = Recorded(tmp_path)
    night.node("n1", 8)
    night.pod("a-0", 8)
    for number, (here, there) in enumerate((("a", "b"), ("b", "a"), ("a", "b"), ("b", "a"))):
        night.pass_time(20.0)
        night.bind(f"{here}-0")
        night.pod(f"{there}-0", 8)
        night.pass_time(1.0)
        night.event(f"{here}-0", related={"kind": "Pod", "uid": night.uid(f"{there}-0")})
        if is_shown:
            night.pod(f"c-{number}", 8)
            night.nominate(f"c-{number}")
        night.evict(f"{here}-0", "default-scheduler: preempting")
        if is_shown:
            night.bind(f"c-{number}")
            night.delete(f"c-{number}")
        night.pass_time(61.0)
    night.close()
    assert len(evictions(tmp_path)) == 4
    assert [one for one in judged(tmp_path) if one.monitor == "ping-pong"] == []


def test_claims_of_any_length_and_number_are_cut(tmp_path: Path) -> None:
    night = Night(tmp_path, "volcano")
    for number in range(20):
        night.event("giver-x", related={"kind": "Pod", "namespace": SPACE, "name": f"{number}" * 5_000})
    night.evict("giver-x", "evicted by volcano")
    night.close()
    assert len(about("team/giver-x", evictions(tmp_path))) < 2_500


@pytest.mark.parametrize("key", ["tier", "votes", "whole-gang", "preemptor-queue", "waits"])
def test_details_of_a_forged_event_neither_stop_the_page_nor_stand_in_it(tmp_path: Path, key: str) -> None:
    night = Night(tmp_path, "volcano")
    began = night.now
    related = {"kind": "Pod", "namespace": SPACE, "name": "other-x"}
    night.event("giver-x", {f"schedspec.dev/{key}": "forged"}, related=related)
    night.displace(())
    night.close()
    record = record_of(tmp_path, began, began + 60.0)
    [evicted] = [act for act in record.acts if act.act == "evict"]
    assert (evicted.tier, evicted.votes, evicted.whole_gang, evicted.preemptor_queue) == (0, {}, False, "online")
    assert "taker" in html.render([record])
