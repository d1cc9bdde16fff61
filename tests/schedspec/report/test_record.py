"""The record of a scenario: one clock, no foreign objects, the clean-up marked, and the published eviction reasons."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from schedspec.api.errors import HarnessError
from schedspec.api.kinds import Kind
from schedspec.report import record
from schedspec.report.from_run import make_record
from schedspec.report.record import ScenarioRecord
from schedspec.scenario.run import SentenceRun
from tests.support.scene import Scene, reclaim


def story(made: ScenarioRecord, kind: str, name: str) -> record.Story:
    [found] = [it for it in made.objects if (it.kind, it.name) == (kind, name)]
    return found


def test_sentences_and_their_effects_have_times_of_one_clock() -> None:
    made = reclaim()
    [when] = [sentence for sentence in made.sentences if sentence.keyword == "When"]
    [pod] = [moment for moment in story(made, "pod", "chat-5f7-x2").moments if moment.change == "added"]
    assert when.began <= pod.at < when.began + when.seconds
    assert [act.at for act in made.acts if act.act == "evict"] == [0.56, 0.562, 0.564]


def test_a_sentence_keeps_the_table_under_it() -> None:
    sentence = reclaim().sentences[2]
    assert sentence.table == [
        ["queue", "priority", "card quota"],
        ["inference", "80000", "8"],
        ["training", "20000", "8"],
    ]


def test_sentences_after_the_failure_are_recorded_as_skipped() -> None:
    it = Scene()
    it.add_sentence("Given", "a cluster", 1.0)
    running = it.running()
    running.planned = [*it.sentences, SentenceRun("Then", "it runs", 9)]
    assert [(sentence.text, sentence.verdict) for sentence in make_record(running).sentences] == [
        ("a cluster", "passed"),
        ("it runs", "skipped"),
    ]


def test_versions_of_the_clean_up_are_marked_and_are_no_acts() -> None:
    made = reclaim()
    last = story(made, "pod", "medium-1-task-0").moments[-1]
    assert (last.change, last.cleanup) == ("gone", True)
    assert not any(moment.cleanup for moment in story(made, "pod", "low-1-task-0").moments)
    assert made.cleanup is not None
    assert made.cleanup.began == made.seconds


def test_a_record_contains_nothing_of_an_earlier_scenario() -> None:
    it = Scene("spec-2")
    history = it.history
    history.opened = 1000.5
    it.queue("of-an-earlier-one")
    it.queue("default")
    it.put(Kind.QUEUE, "of-an-earlier-one", {"spec": {}}, namespaced=False, change="gone")
    it.namespace = "spec-1"
    it.pod("leftover", "g")
    it.namespace = "spec-2"
    it.now = 1.0
    it.queue("ours")
    it.pod("p", "g")
    about = {"kind": "Queue", "name": "x", "uid": "uid-of-another"}
    it.put(Kind.EVENT, "late", {"metadata": {"namespace": "default"}, "involvedObject": about})
    history._versions[-1] = msgspec.structs.replace(
        history._versions[-1], ref=history._versions[-1].ref._replace(namespace="default")
    )
    assert sorted((it.kind, it.name) for it in it.record().objects) == [
        ("pod", "p"),
        ("queue", "default"),
        ("queue", "ours"),
    ]


def test_an_eviction_has_everything_that_the_scheduler_published() -> None:
    first = next(act for act in reclaim().acts if act.act == "evict")
    assert (first.pod, first.preemptor, first.preemptor_uid) == ("low-2-task-0", "chat-5f7-x2", "uid-chat-5f7-x2")
    assert (first.action, first.tier, first.inferred) == ("reclaim", 2, False)
    assert first.votes == {"gang": "permits", "capacity": "permits"}
    assert (first.queue, first.preemptor_queue) == ("training", "inference")
    assert first.amounts == {"cpu": "1", "nvidia.com/gpu": "2"}


def test_the_preemptor_is_inferred_if_the_scheduler_names_none() -> None:
    first = next(act for act in reclaim(names_preemptor=False).acts if act.act == "evict")
    assert (first.preemptor, first.preemptor_queue, first.inferred) == ("chat-5f7-x2", "inference", True)
    assert (first.tier, first.votes) == (0, {})


def test_evicted_to_requested_is_computed_by_resource() -> None:
    made = reclaim().evicted
    assert (made.pods, made.ratio["nvidia.com/gpu"]) == (3, 1.0)
    assert (made.evicted["nvidia.com/gpu"], made.requested["nvidia.com/gpu"]) == ("6", "6")


def test_the_amount_that_a_queue_holds_is_summed_from_its_pods() -> None:
    held = [(it.at, it.held.get("nvidia.com/gpu", "0")) for it in reclaim().queues if it.queue == "training"]
    assert [amount for _, amount in held] == ["0", "2", "4", "6", "8", "6", "4", "2"]
    assert held[-1][0] == 0.564


def test_an_ancestor_holds_what_its_descendants_hold() -> None:
    it = Scene()
    it.queue("team")
    it.queue("child", parent="team")
    it.gang("g", "child")
    it.pod("p", "g", cpu="2")
    it.bind("p", "n")
    it.now = 1.0
    policy = "tiers: [{plugins: [{name: capacity, enableHierarchy: true}]}]"
    running = it.running()
    running.world.policy = policy  # type: ignore[union-attr]
    assert sorted((it.queue, it.held) for it in make_record(running).queues if it.held) == [
        ("child", {"cpu": "2"}),
        ("team", {"cpu": "2"}),
    ]


def test_each_resource_has_a_unit() -> None:
    assert reclaim().units == {"cpu": "cores", "memory": "bytes", "nvidia.com/gpu": "cards", "pods": "pods"}


def test_a_scenario_without_a_cluster_has_a_record_too() -> None:
    it = Scene()
    it.add_sentence("Given", "a cluster", 1.0, verdict="failed")
    running = it.running(problem=HarnessError("no program to boot it with"))
    running.world = None
    made = make_record(running)
    assert (made.verdict, made.failure and made.failure.text) == ("failed", "no program to boot it with")
    assert made.objects == []


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = reclaim(fails=True)
    path = record.write(made, tmp_path)
    assert record.read(path) == made


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"schema": 1}', "schema 1, but this version reads 2: run the scenario again"),
        ('{"schema": 2}', "not a record of a scenario"),
        ('{"kind": "List"}', "not a record of a scenario: name a folder of out"),
        ("[", "not a record of a scenario"),
    ],
)
def test_a_file_that_is_no_record_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(record.RecordError, match=message):
        record.read(path)


def test_a_failure_has_a_headline_and_a_place() -> None:
    made = reclaim(fails=True)
    assert (made.headline, made.where) == (
        'expected "chat" keeps waiting, saw it runs on card-node-1',
        "features/area/some.feature:15",
    )
    assert (reclaim().headline, reclaim().where) == ("", "features/area/some.feature:7")


def test_only_the_newest_record_of_a_scenario_counts(tmp_path: Path) -> None:
    made = reclaim()
    for number, began in enumerate((2.0, 3.0, 1.0)):
        record.write(msgspec.structs.replace(made, began=began), tmp_path / f"run-{number}" / "scenarios" / "x")
    other = msgspec.structs.replace(made, cluster=record.Software("kind"))
    record.write(other, tmp_path / "run-3" / "scenarios" / "x")
    assert sorted((it.cluster.name, it.began) for it in record.read_all([tmp_path])) == [
        ("kind", made.began),
        ("none", 3.0),
    ]
