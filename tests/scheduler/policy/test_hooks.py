"""A plugin class is registered with the hooks that it declares, and the policy can switch hooks off."""

from __future__ import annotations

import pytest

from schedspec.scheduler.framework.plugin import Plugin
from schedspec.scheduler.framework.session import Session
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.model.job import Job
from schedspec.scheduler.model.queue import Queue
from schedspec.scheduler.plugins import PLUGINS
from schedspec.scheduler.policy import schema
from schedspec.scheduler.policy.hooks import HOOKS, JobReady, JobValid, Overused
from schedspec.scheduler.policy.model import PluginOption, Policy
from schedspec.scheduler.policy.tiers import Hooks, Lazy
from tests.support.registrable import Registrable


def test_a_plugin_class_is_registered_with_its_hooks_and_arguments(registrable: Registrable) -> None:
    registrable("weekend")

    class Weekend(Plugin, Overused, JobValid):
        name = "weekend"
        arguments = {"days": schema.Argument(schema.INT, 1, default=2)}  # noqa: RUF012

        def overused(self, queue: Queue) -> bool:
            return queue.name == "work"

        def job_valid(self, job: Job) -> None:
            return None

    assert PLUGINS["weekend"] is Weekend
    rule = schema.PLUGINS["weekend"]
    assert (rule.hooks, rule.switches) == ({"overused", "job_valid"}, {"enabledOverused"})
    assert Weekend(PluginOption("weekend")).argument("days") == 2
    assert Weekend(PluginOption("weekend", arguments={"days": 3})).argument("days") == 3


def test_a_method_with_a_hooks_name_requires_deriving_from_the_hook() -> None:
    with pytest.raises(TypeError, match=r"Careless\.job_ready .*derive Careless from .*hooks\.JobReady"):

        class Careless(Plugin):
            def job_ready(self, job: Job) -> bool:
                return job.ready > 0


def test_mypy_rejects_a_hook_method_with_a_wrong_signature() -> None:
    """mypy reports a `type: ignore` without an error as unused, so these comments prove the errors."""

    class Wrong(Plugin, JobReady, Overused):
        def job_ready(self, job: Job) -> str:  # type: ignore[override]
            return job.name

        def overused(self, queue: int) -> bool:  # type: ignore[override]
            return queue > 0

    with pytest.raises(TypeError, match="abstract"):
        type("Missing", (Plugin, JobReady), {})(PluginOption(""))  # type: ignore[abstract, unused-ignore]


def test_every_hook_has_a_chain() -> None:
    all_hooks = Hooks()
    assert {name for name, it in vars(Hooks).items() if isinstance(it, Lazy)} == set(HOOKS)
    assert {name: getattr(all_hooks, name).hook for name in HOOKS} == HOOKS


@pytest.mark.parametrize("name", sorted(PLUGINS))
def test_a_switch_turns_off_exactly_its_own_hooks(name: str) -> None:
    rule = schema.PLUGINS[name]
    for switch in rule.switches - {"enableHierarchy"}:
        option = PluginOption(name, {switch: False})
        hooks = Session(Cluster(), Policy((), ((option,),)), 0.0, PLUGINS).hooks
        left = {hook for hook in HOOKS if getattr(hooks, hook).entries}
        assert left == {hook for hook in rule.hooks if HOOKS[hook].switch != switch}
