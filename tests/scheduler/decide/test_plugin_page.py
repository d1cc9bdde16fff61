"""The plugin of `docs/plugins.md` works as the page describes, unchanged."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from schedspec.scheduler.decide import decide
from schedspec.scheduler.policy.model import PluginOption, Policy
from tests.scheduler.decide import test_tables
from tests.support.core.notation import EPOCH, timestamp
from tests.support.core.world import World
from tests.support.registrable import Registrable

PAGE = Path(__file__).parents[3] / "docs" / "plugins.md"


def on_the_page(pattern: str) -> str:
    found = re.search(pattern, PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert found is not None, f"{PAGE.name} does not match {pattern}"
    return found.group(1)


@pytest.fixture
def _warmup(registrable: Registrable) -> None:
    """Register the plugin from the page."""
    registrable("warmup")
    exec(
        compile(on_the_page(r"```python\n(.*?)```"), str(PAGE), "exec"),
        {"__name__": "schedspec.scheduler.plugins.warmup"},
    )


@pytest.mark.usefixtures("_warmup")
def test_the_table_on_the_page_passes() -> None:
    for table in yaml.safe_load(on_the_page(r"^(       - name: .*?\n)\n(?! {7})")):
        test_tables.test_table(table)


@pytest.mark.usefixtures("_warmup")
def test_the_plugin_on_the_page_protects_pods_until_their_warmup_is_over() -> None:
    names = ("priority", "warmup", "predicates")
    policy = Policy(("allocate", "preempt"), (tuple(PluginOption(name) for name in names),))
    world = World(policy)
    started = {"startTime": timestamp(900)}
    hot = {"metadata": {"annotations": {"volcano.sh/warmup-time": "10m"}}, "status": started}
    world.load(
        {
            "nodes": [{"name": "n1", "has": "2 cpu"}],
            "queues": [{"name": "default"}],
            "jobs": [
                {"name": "old", "tasks": "2 x 1 cpu running on n1", "priority": 1, "pod": hot},
                {"name": "new", "tasks": "1 x 1 cpu", "priority": 5, "phase": "Inqueue"},
            ],
        }
    )
    world.now = EPOCH + 1000.0
    before = decide(world.cluster, policy, world.now)
    assert not before.evictions
    assert before.wake_at is not None
    assert before.wake_at <= EPOCH + 1500.0
    assert not decide(world.cluster, policy, EPOCH + 1499.0).evictions
    assert len(decide(world.cluster, policy, EPOCH + 1501.0).evictions) == 1
