"""The comments of a reduced feature are complete for a reader who has only the file."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from schedspec.cli import schedspec
from schedspec.lab.reduce.case import Case, CaseNode, CasePriorityClass, SubmitStep, Work
from schedspec.lab.reduce.feature import clean
from schedspec.lab.reduce.reduce import Reduced
from schedspec.lab.reduce.signature import EvictedFate
from schedspec.lab.reduce.written import known_policies, names_of_the_state, why_it_fails, write
from schedspec.monitors import MONITORS
from schedspec.schedulers import ADAPTERS

LONG = "spec-a-job-with-spare-pods-keeps-the-1"
"""A namespace of a scenario of the maximum length."""
UID = "2011d1ff-a546-483f-a2f6-2d278a039fa3"


@pytest.mark.parametrize(
    ("names_in_state", "comments"),
    [
        (
            {"train-1": f"{LONG}/claim-{UID}", "train-2": f"{LONG}/next-{UID}", "training": "owner"},
            [
                f"Jobs: train-1 stands for claim, train-2 for next (namespace {LONG})",
                "Queues: training stands for owner",
            ],
        ),
        ({"train-1": "a/x", "train-2": "b/x"}, ["Jobs: train-1 stands for a/x, train-2 for b/x"]),
        ({"train-1": "a/x\n    Then nothing is evicted", "training": "training"}, []),
    ],
    ids=["one-namespace", "two-namespaces", "no-names"],
)
def test_comments_map_names_to_those_of_the_state(names_in_state: dict[str, str], comments: list[str]) -> None:
    assert names_of_the_state(SimpleNamespace(names_in_state=names_in_state)) == comments
    assert [clean(comment) for comment in comments] == comments, "no comment is cut"


def test_the_comment_on_the_failure_is_not_cut_for_any_monitor() -> None:
    for monitor in MONITORS:
        comment = why_it_fails(monitor, "kube-scheduler")
        assert clean(comment) == comment
        assert f"the monitor {monitor} finds" in comment


@pytest.mark.parametrize("scheduler", [name for name in ADAPTERS if name != "none"])
def test_a_feature_has_only_sentences_and_columns_of_its_scheduler(tmp_path: Path, scheduler: str) -> None:
    work = Work("train-1", pods=3, minimum=1, requests=(("cpu", 1000),)), Work("train-2", priority="high")
    classes, steps = (CasePriorityClass("high", 9),), tuple(SubmitStep((job,)) for job in work)
    nodes = (CaseNode("n1", (("cpu", 4000),)),)
    case = Case(known_policies()["preempt"], nodes, classes=classes, steps=steps, subject="train-1")
    found = Reduced(case, EvictedFate("", within_queue=False, whole_gang=False), 9, "preempt")
    out = tmp_path / "evicted.feature"
    write(out, found, [], scheduler=scheduler, is_played=False)
    checked = CliRunner().invoke(schedspec, ["check", str(out), "--scheduler", scheduler])
    assert checked.exit_code == 0, checked.output
