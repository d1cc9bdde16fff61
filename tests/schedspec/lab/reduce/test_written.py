"""The comments of a reduced feature are complete for a reader who has only the file."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from schedspec.lab.reduce.feature import clean
from schedspec.lab.reduce.written import names_of_the_state, why_it_fails
from schedspec.monitors import MONITORS

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
