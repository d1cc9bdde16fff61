"""Steps on the policies of Volcano Jobs: what happens to a job when its pods fail, wait too long or are evicted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from schedspec.api import timeouts
from schedspec.api.capabilities import Capability
from schedspec.checks import phases, pods
from schedspec.gherkin import quantities, tables
from schedspec.gherkin.quantities import MANY
from schedspec.gherkin.step_decorators import one_of, refers, then, vacuous, when
from schedspec.gherkin.things import WORKLOAD
from schedspec.observe import view as views
from schedspec.observe.expect import Expect
from schedspec.scenario.world import World

_ACTIONS = (
    *("AbortJob", "RestartJob", "RestartTask", "RestartPod", "RestartPartition", "TerminateJob", "CompleteJob"),
    *("ResumeJob", "SyncJob"),
)
"""Actions of a Volcano Job, on events."""
_OF_JOB = ("PodFailed", "PodEvicted", "PodPending", "PodRunning", "TaskFailed", "Unknown", "JobUpdated")
_OF_TASK = ("TaskCompleted",)
"""Events whose policy stands at the task, also in a table of jobs with one task."""
COUNTER = one_of(*("retryCount", "version", "pending", "running", "succeeded", "failed", "terminating", "minAvailable"))
"""Numbers in the status of a Volcano Job."""
_NO_EXIT = "no pod fails with this exit code; write 1 to 255"


def _action(text: str) -> dict[str, str]:
    """Parse an action of a Job, possibly with a timeout: `RestartJob after 10m`. Raises ValueError."""
    name, _, timeout = text.partition(" after ")
    if name not in _ACTIONS:
        raise ValueError(f"is no action of a Job{tables.nearest(name, _ACTIONS)}; there are: {', '.join(_ACTIONS)}")
    return {"action": name} | ({"timeout": tables.duration(timeout)} if timeout else {})


def _on(event: str) -> Callable[[str], list[dict[str, Any]]]:
    return lambda text: [{"event": event, **_action(text)}]


def _on_exit_codes(text: str) -> list[dict[str, Any]]:
    """Parse `137 RestartTask, 3 AbortJob`. Raises ValueError."""
    found: dict[int, dict[str, Any]] = {}
    for part in tables.names(text):
        number, _, action = part.partition(" ")
        code = tables.count(number)
        if not 0 < code < 256:
            raise ValueError(_NO_EXIT)
        if code in found:
            raise ValueError(f"{code} appears twice")
        found[code] = {"exitCode": code, **_action(action)}
    return list(found.values())


def columns(prefix: str, policies: str, of_task: str) -> dict[str, tables.Column]:
    """Return the columns for the policies of a job, or of a task.

    Args:
        prefix: What each column begins with.
        policies: The parameter of the policies.
        of_task: The parameter of the policies that stand at the task.
    """
    found: dict[str, tables.Column] = {}
    for event in (*_OF_JOB, *_OF_TASK):
        found[f"{prefix}on {event}"] = (f"{of_task if event in _OF_TASK else policies} {event}", _on(event))
    found[f"{prefix}on exit code"] = (f"{policies} code", _on_exit_codes)
    found[f"{prefix}on any event"] = (f"{policies} any", _on("*"))
    return found


def has_one(column: str) -> bool:
    """Whether a column has policies on events."""
    return column.removeprefix("job ").startswith("on ")


def flaws(policies: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield why the API server of a cluster with Volcano refuses these policies together."""
    others = sorted(policies.keys() - {"any", "code"})
    if "any" in policies and others:
        yield "", f"on any event stands beside on {others[0]}, and Volcano refuses both together: keep one of them"


def _not_one(many: str) -> str:
    """Return why an act on so many pods is not one act; empty if it is."""
    unsure = many.startswith(("at ", "between"))
    return "an act needs one number: write 2, or half of the" if unsure else quantities.problem(many)


@when('a pod of "{name}" fails with exit code {code:d}')
@when('{many:Many} pods of "{name}" fail with exit code {code:d}', Many=MANY)
@refers(name=WORKLOAD)
@vacuous(lambda values, _: _not_one(values.get("many", "")) or ("" if 0 < values["code"] < 256 else _NO_EXIT))
def _(world: World, expect: Expect, name: str, code: int, many: str = "exactly 1") -> None:
    """Running pods of the workload fail with this exit code: one, or so many; the first by name."""
    _end(world, expect, name, many, code)


@when('{many:Many} pod of "{name}" completes', Many=MANY)
@when('{many:Many} pods of "{name}" complete', Many=MANY)
@refers(name=WORKLOAD)
@vacuous(lambda values, _: _not_one(values["many"]))
def _(world: World, expect: Expect, name: str, many: str) -> None:
    """So many running pods of the workload exit with code 0; the first by name."""
    _end(world, expect, name, many, 0)


def _end(world: World, expect: Expect, name: str, many: str, code: int) -> None:
    expect.eventually(pods.can_end(name, many), within=timeouts.RUNS)
    running = [pod for pod in views.pods_of(world.history.now(), name) if views.runs(pod)]
    ending = running[: quantities.bounds(many, len(running))[0]]
    for pod in ending:
        world.finish(str(pod["metadata"]["name"]), exit_code=code)
    expect.eventually(pods.have_ended(ending), within=timeouts.COMPLETES)


@then('job "{name}" has {counter:Counter} {number:d}', needs=(Capability.JOB_POLICIES,), Counter=COUNTER)
@refers(name=WORKLOAD)
def _(expect: Expect, name: str, counter: str, number: int) -> None:
    """A number in the job's status, for a while: retryCount (its restarts), version (its ends), running, failed."""
    expect.settles(phases.job_counts(name, counter, number), within=timeouts.PHASE, during=timeouts.HOLDS)


@then('{many:Many} pod of "{name}" is replaced', needs=(Capability.POD_NAMES,), Many=MANY)
@then('{many:Many} pods of "{name}" are replaced', needs=(Capability.POD_NAMES,), Many=MANY)
@refers(name=WORKLOAD)
@vacuous(lambda values, _: quantities.problem(values["many"]))
def _(expect: Expect, name: str, many: str) -> None:
    """So many of its pods have had a successor of the same name since the scenario began."""
    expect.settles(pods.count_replaced(name, many), within=timeouts.PHASE, during=timeouts.HOLDS)
