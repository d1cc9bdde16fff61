"""Who decides in a plan: the user's choice, else the scheduler of the state if its program is here, else our model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from schedspec.api.errors import HarnessError
from schedspec.lab.plan.make import ModelScheduler
from schedspec.lab.twin import choose
from schedspec.lab.twin.choose import Choice, OwnProgram, kueue_policy
from schedspec.schedulers.kueue import quota as policies
from schedspec.virtual.state import ForeignStateError, State, StateError
from tests.schedspec.lab.twin.test_objects import TABLE
from tests.support.core.states import state_of
from tests.support.kueue_state import workload


def state(scheduler: str = "", *, kueue: bool = False, groups: bool = True) -> State:
    found = state_of(TABLE)
    for pod in found.objects["Pod"].values():
        pod.spec.scheduler_name = scheduler
    if not groups:
        found.objects["PodGroup"].clear()
    if kueue:
        found.others["Workload"] = {"team/w": workload("w", "q", 1)}
    return found


CHOICES: dict[str, tuple[Choice, State, bool, str]] = {
    "ours": (Choice(), state("schedspec"), True, "model"),
    "no name": (Choice(), state(), True, "model"),
    "volcano, its program is here": (Choice(), state("volcano"), False, "volcano"),
    "volcano, its program is not here": (Choice(), state("volcano"), True, "model"),
    "volcano, by the user's folder": (Choice(programs=Path(), progress=print), state("volcano"), True, "volcano"),
    "kueue": (Choice(), state(kueue=True, groups=False), True, "kueue"),
    "named": (Choice("kube-scheduler"), state("schedspec"), True, "kube-scheduler"),
    "named, in spite of the state": (Choice("volcano"), state("schedspec"), True, "volcano"),
    "the model, in spite of the state": (Choice(by_model=True), state("volcano"), False, "model"),
}


@pytest.mark.parametrize(("choice", "found", "is_missing", "who"), CHOICES.values(), ids=CHOICES.keys())
def test_who_decides(choice: Choice, found: State, is_missing: bool, who: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(choose.binaries, "missing", lambda names, **_: [*names] if is_missing else [])
    decider = choice.of(found)
    if isinstance(decider, ModelScheduler):
        assert who == "model"
    else:
        assert isinstance(decider, OwnProgram)
        assert decider.proposed.adapter.name == who
        assert decider.runs == (3 if who == "volcano" else 1)


def test_the_model_is_not_asked_about_kueue() -> None:
    with pytest.raises(ForeignStateError, match="--scheduler kueue"):
        Choice(by_model=True).of(state(kueue=True, groups=False))


OURS, OF_KUEUE = state("schedspec"), state(kueue=True, groups=False)
REFUSED: dict[str, tuple[Choice, State, str]] = {
    "runs of the model": (Choice(runs=3), OURS, "--runs: our model decides"),
    "a time of the model": (Choice(settle=3.0), OURS, "--settle: our model decides"),
    "programs of the model": (Choice(programs=Path()), OURS, "--scheduler-binaries: our model decides"),
    "runs of the model, named": (Choice(by_model=True, runs=3), state("volcano"), "--runs: our model decides"),
    "a scheduler beside the model": (
        Choice("volcano", by_model=True),
        OURS,
        "--scheduler: our model.*leave --model out",
    ),
    "no scheduler": (Choice("none"), OURS, "no program decides"),
    "kueue without its objects": (Choice("kueue"), OURS, "has no object of Kueue"),
    "an upgrade without its objects": (Choice("kueue@v0.19.1..v0.19.2"), OURS, "has no object of Kueue"),
    "volcano on kueue's objects": (Choice("volcano"), OF_KUEUE, "Kueue decides in this cluster"),
    "one version twice": (Choice("kueue@v0.19.2..v0.19.2"), OF_KUEUE, "both versions are v0.19.2"),
    "no first version": (Choice("kueue@..v0.19.2"), OF_KUEUE, "is no version; write"),
    "no second version": (Choice("kueue@v0.19.2.."), OF_KUEUE, "is no version; write"),
    "an unknown version": (Choice("kueue@v9..v0.19.2"), OF_KUEUE, "'v9' is no version; write"),
    "a version of ours": (Choice("schedspec@v1.0.0"), OURS, "schedspec has no versions to choose from"),
    "two versions of ours": (Choice("schedspec@v1.0.0..v1.0.1"), OURS, "schedspec has no versions to choose from"),
    "a capital": (Choice("Volcano"), OURS, r"is 'volcano' meant\?.*schedulers are schedspec, volcano"),
}


@pytest.mark.parametrize(("choice", "found", "says"), REFUSED.values(), ids=REFUSED.keys())
def test_a_choice_that_nothing_reads_or_could_decide_is_refused_before_a_boot(
    choice: Choice, found: State, says: str
) -> None:
    with pytest.raises((HarnessError, StateError), match=f"(?s){says}"):
        choice.of(found)


def test_of_two_schedulers_in_one_cluster_the_user_names_one() -> None:
    with pytest.raises(HarnessError, match="two schedulers decide"):
        Choice().of(state("volcano", kueue=True))
    assert isinstance(Choice("volcano").of(state("volcano", kueue=True)), OwnProgram)


def test_an_upgrade_runs_the_old_version_in_the_world_as_it_is() -> None:
    decider = Choice("kueue@v0.19.1..v0.19.2").of(state(kueue=True, groups=False))
    assert isinstance(decider, OwnProgram)
    assert decider.now is not decider.proposed


@pytest.mark.parametrize(("version", "gates"), [("v0.19.2", {"FinishOrphanedWorkloads": False}), ("v0.17.0", {})])
def test_kueue_does_not_finish_workloads_whose_jobs_are_not_in_a_state(version: str, gates: dict[str, bool]) -> None:
    assert policies.read(kueue_policy(State("x", 0.0))).gates(version) == gates
