"""Steps on work of a team's own manifests."""

from __future__ import annotations

from schedspec.api import timeouts
from schedspec.api.kinds import GPU
from schedspec.checks import pods
from schedspec.gherkin import tables
from schedspec.gherkin.step_decorators import given, makes, refers, table, vacuous, when
from schedspec.gherkin.things import JOBS_OF, PRIORITY_CLASS
from schedspec.observe.expect import Expect
from schedspec.scenario import own_work
from schedspec.scenario.world import World
from schedspec.steps.columns import Beside, needed_by_work

_VALUES = tables.Shape(
    {
        "job": ("name", tables.in_namespace(tables.name)),
        "queue": ("queue", tables.name),
        "priority": ("priority", tables.name),
        "replicas": ("replicas", tables.at_least_one),
        "min available": ("min_available", tables.at_least_one),
        "cpu": ("cpu", tables.cpus),
        "memory": ("memory", tables.memory),
        "gpus": (tables.of_resource(GPU), tables.whole_amount),
        "node selector": ("node_selector", tables.labels),
        "tolerates": ("tolerates", tables.keys),
    },
    unique="job",
    refers={"priority": PRIORITY_CLASS},
    needs=needed_by_work,
)


@given('the jobs of "{file}" are submitted')
@when('the jobs of "{file}" are submitted')
@refers(file=JOBS_OF)
@makes(lambda _values, _rows: [])
def _(world: World, beside: Beside, file: str) -> None:
    """Work of a manifest: Jobs, VolcanoJobs, PyTorchJobs, TrainJobs, Deployments, StatefulSets, pods; also quotas."""
    world.apply_work(beside(file))


@given('the jobs of "{file}" are submitted with:')
@when('the jobs of "{file}" are submitted with:')
@refers(file=JOBS_OF)
@table(_VALUES)
@makes(lambda _values, _rows: [])
@vacuous(
    lambda _, rows: "a row has no value; fill in a column beside job" if any(not {*r} - {"name"} for r in rows) else ""
)
def _(world: World, beside: Beside, file: str, datatable: tables.Table) -> None:
    """Work of a manifest, with values in place of those of the file; a row without a name is for all of it."""
    world.apply_work(beside(file), _VALUES.rows(datatable))


@given('the jobs of "{file}" run')
@refers(file=JOBS_OF)
@makes(lambda _values, _rows: [])
def _(world: World, expect: Expect, beside: Beside, file: str) -> None:
    """Work of a manifest is submitted, and all of it runs before the next sentence."""
    world.apply_work(beside(file))
    for name in own_work.names(own_work.of_file(beside(file))):
        expect.eventually(pods.runs(name), within=timeouts.RUNS)
