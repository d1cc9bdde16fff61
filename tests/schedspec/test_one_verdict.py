"""One file, one verdict: check, lint, a sentence that names the file, plan, simulate and a simulated cluster agree.

What a real API server says of the same objects is in `tests/scheduler/controllers/crds`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from schedspec.cli.check import check_command
from schedspec.gherkin.things import NODES_OF, POLICY_OF, QUEUES_OF
from schedspec.lab.plan.changes import ChangeError, Side
from schedspec.lab.simulate.columns import InputError
from schedspec.lab.simulate.inputs import read_scene
from schedspec.plugin.run_facts import Files
from schedspec.scheduler.lint import lint, lint_manifests
from schedspec.scheduler.model.documents import compose, construct
from schedspec.scheduler.policy.loader import PolicyError, load_policy
from schedspec.schedulers import Adapter, Own
from schedspec.schedulers.volcano import Volcano
from schedspec.virtual.cluster.server import ApiServer
from schedspec.virtual.cluster.store import Store

QUEUE = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: a}\n"
QUEUES = {
    "a queue": (f"{QUEUE}spec: {{weight: 2}}\n", ""),
    "a queue in JSON": (json.dumps(yaml.safe_load(f"{QUEUE}spec: {{weight: 2}}\n")), ""),
    "a misspelt field": (f"{QUEUE}spec: {{reclaimabel: false}}\n", "spec.reclaimabel"),
    "a misspelt field in JSON": (json.dumps(yaml.safe_load(f"{QUEUE}spec: {{capabilitys: {{}}}}\n")), "capabilitys"),
    "a field one level too high": (f"{QUEUE}spec: {{guarantee: {{cpu: 4}}}}\n", "spec.guarantee.cpu"),
    "a misspelt field of metadata": (
        f"{QUEUE.replace('name: a', 'name: a, anotations: {}')}spec: {{}}\n",
        "anotations",
    ),
    "a field of Volcano that is not honoured": (f"{QUEUE}spec: {{dequeueStrategy: fifo}}\n", "dequeueStrategy"),
    "a quantity with a blank": (f"{QUEUE}spec: {{deserved: {{memory: 256 Gi}}}}\n", "256 Gi"),
    "an amount with a colon": (f"{QUEUE}spec: {{deserved: {{memory: 1:30}}}}\n", "1:30"),
    "a date as a label": (f"{QUEUE.replace('name: a', 'name: a, labels: {since: 2026-01-01}')}spec: {{}}\n", ""),
    "a text where a number belongs": (f"{QUEUE}spec: {{weight: 'two'}}\n", "weight"),
    "amounts that contradict each other": (
        f"{QUEUE}spec: {{deserved: {{cpu: 4}}, capability: {{cpu: 2}}}}\n",
        "spec.deserved",
    ),
    "a field that is written twice": (f"{QUEUE}spec: {{weight: 2, weight: 3}}\n", "'weight' is written twice"),
    "a queue that is written twice": (
        f"{QUEUE}spec: {{weight: 2}}\n---\n{QUEUE}spec: {{weight: 3}}\n",
        "Queue a is in this file twice, first in line 1",
    ),
    **{
        f"the name {name}": (f"{QUEUE.replace('name: a', f'name: {name}')}spec: {{weight: 2}}\n", name)
        for name in ("Team", "team_a", "équipe", "-a", "a..b")
    },
    "a name with dots": (f"{QUEUE.replace('name: a', 'name: team.a-1')}spec: {{weight: 2}}\n", ""),
    "a weight of nothing": (f"{QUEUE}spec: {{weight: 0}}\n", "weight"),
    "a queue that is its own parent": (f"{QUEUE}spec: {{parent: a}}\n", "parent"),
    "a version that the API has not": (f"{QUEUE.replace('v1beta1', 'v1')}spec: {{}}\n", "v1"),
    "no spec": (QUEUE, "spec"),
}
POLICY = 'actions: "allocate, backfill"\ntiers:\n- plugins:\n  - name: %s\n'


def _indented(key: str, head: str = "") -> str:
    lines = (POLICY % "%s").replace("\n", "\n    ").rstrip()
    return f"{head}  {key}: |\n    {lines}\n"


POLICIES = {
    "a file": POLICY,
    "a ConfigMap": _indented("volcano-scheduler.conf", "apiVersion: v1\nkind: ConfigMap\ndata:\n"),
    "a chart's values": _indented("scheduler_config_override", "custom:\n"),
    "a HelmRelease": (
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nspec:\n values:\n"
        + _indented("scheduler_config_override").replace("  scheduler", "  scheduler", 1)
    ),
    "JSON": json.dumps({"actions": "allocate, backfill", "tiers": [{"plugins": [{"name": "%s"}]}]}),
}


def _by_check(path: Path) -> str:
    done = CliRunner().invoke(check_command, [str(path), "-o", "json"])
    return "\n".join(found["text"] for found in json.loads(done.output) if found["kind"] == "error")


def _by_lint(path: Path) -> str:
    return "\n".join(found.render() for found in lint_manifests([(str(path), path.read_text())]) if found.is_error)


def _by_sentence(path: Path) -> str:
    return Files(path.parent, Own()).problem(QUEUES_OF, path.name, path.parent)


def _by_plan(path: Path) -> str:
    try:
        Side("new", {path.name: path.read_text()}).declared(None)
    except ChangeError as refused:
        return str(refused)
    return ""


def _by_simulate(path: Path) -> str:
    try:
        read_scene(["1x1"], [path], "nvidia.com/gpu")
    except InputError as refused:
        return str(refused)
    return ""


def _by_simulated_cluster(path: Path) -> str:
    if "twice" in (refused := _by_lint(path)):
        return refused  # a client reads the file
    item = construct(compose(path.read_text())[0])
    server = ApiServer(Store(lambda: 0.0), lambda _delay, _function: None)
    status, answer = server.request("POST", "/apis/scheduling.volcano.sh/v1beta1/queues", json.dumps(item).encode())
    if item["apiVersion"].endswith("/v1"):
        return "there is no path of scheduling.volcano.sh/v1"
    return "" if status == 201 else answer.decode()


QUEUE_READERS = {
    "check": _by_check,
    "lint": _by_lint,
    "the queues of": _by_sentence,
    "plan": _by_plan,
    "simulate": _by_simulate,
    "a simulated cluster": _by_simulated_cluster,
}


@pytest.mark.parametrize("reader", QUEUE_READERS)
@pytest.mark.parametrize("name", QUEUES)
def test_every_reader_of_queues_says_the_same(tmp_path: Path, name: str, reader: str) -> None:
    text, refused = QUEUES[name]
    path = tmp_path / "queues.yaml"
    path.write_text(text)
    found = QUEUE_READERS[reader](path)
    assert (refused in found) if refused else not found


VERDICTS_OF_VOLCANO = {
    "a strategy": ("dequeueStrategy: fifo", "", "only traverse"),
    "a strategy that no scheduler has": ("dequeueStrategy: lifo", "lifo", "only traverse"),
    "a field that only Volcano has": ("extendClusters: [{name: east}]", "", "extendClusters"),
    "a misspelt field": ("reclaimabel: true", "reclaimabel", "reclaimabel"),
    "a weight": ("weight: 3", "", ""),
}
"""Line of a spec → what Volcano's definition says, and what ours says."""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder of `--scheduler-binaries` whose definition of a Queue has the fields of Volcano's."""
    text = {"type": "string"}
    fields = {"dequeueStrategy": {**text, "enum": ["fifo", "traverse"]}, "weight": {"type": "integer"}, "type": text}
    fields["extendClusters"] = {"type": "array", "items": {"type": "object", "properties": {"name": text}}}
    schema = {"type": "object", "properties": {"apiVersion": text, "kind": text, "metadata": {"type": "object"}}}
    schema["properties"] |= {"spec": {"type": "object", "properties": fields}}  # type: ignore[operator]
    names = {"kind": "Queue", "plural": "queues"}
    versions = [{"name": "v1beta1", "schema": {"openAPIV3Schema": schema}}]
    definition = {"spec": {"group": "scheduling.volcano.sh", "names": names, "versions": versions}}
    folder = tmp_path / "programs" / "crds"
    folder.mkdir(parents=True)
    (folder / "queues.yaml").write_text(yaml.safe_dump({"kind": "CustomResourceDefinition", **definition}))
    return folder.parent


@pytest.mark.parametrize("name", VERDICTS_OF_VOLCANO)
@pytest.mark.parametrize("is_volcano", [True, False])
def test_queues_are_judged_by_the_definitions_of_the_scheduler_under_test(
    tmp_path: Path, programs: Path, name: str, *, is_volcano: bool
) -> None:
    line, by_volcano, by_ours = VERDICTS_OF_VOLCANO[name]
    path = tmp_path / "queues.yaml"
    path.write_text(f"{QUEUE}spec:\n  {line}\n")
    options = ["--scheduler", "volcano", "--scheduler-binaries", str(programs)] if is_volcano else []
    done = CliRunner().invoke(check_command, [str(path), "-o", "json", *options])
    errors = "\n".join(found["text"] for found in json.loads(done.output) if found["kind"] == "error")
    adapter: Adapter = Volcano() if is_volcano else Own()
    sentence = Files(tmp_path, adapter, programs).problem(QUEUES_OF, path.name, tmp_path)
    folder = programs / "crds" if is_volcano else None
    linted = "".join(found.render() for found in lint_manifests([(str(path), path.read_text())], folder))
    refused = by_volcano if is_volcano else by_ours
    for verdict in (errors, sentence, linted):
        assert (refused in verdict) if refused else not verdict


def test_the_ini_file_names_the_scheduler_that_judges(tmp_path: Path, programs: Path) -> None:
    for text in ("schedspec_scheduler = volcano", "addopts = -q --scheduler volcano", "addopts = --scheduler=volcano"):
        (tmp_path / "pytest.ini").write_text(f"[pytest]\nschedspec_features = .\n{text}\n")
        (tmp_path / "queues.yaml").write_text(f"{QUEUE}spec: {{dequeueStrategy: fifo}}\n")
        done = CliRunner().invoke(check_command, [f"{tmp_path}/queues.yaml", f"--scheduler-binaries={programs}"])
        assert "by the definitions of volcano\n" in done.output
        assert done.exit_code == 0


def test_the_answer_names_the_judge_where_the_definitions_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCHEDSPEC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))
    (tmp_path / "queues.yaml").write_text(f"{QUEUE}spec: {{weight: 2}}\n")
    done = CliRunner().invoke(check_command, [f"{tmp_path}/queues.yaml", "--scheduler=volcano"])
    assert "by our definitions: those of volcano are not on this machine\n" in done.output


NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: 4}}\n"
NODES = {
    "a node": (NODE, ""),
    "a misspelt field": (f"{NODE}spec: {{taint: []}}\n", "spec.taint: unknown field; did you mean taints?"),
    "a number for a label": (NODE.replace("name: n1", "name: n1, labels: {a: 1}"), "metadata.labels.a"),
    "a node that is written twice": (f"{NODE}---\n{NODE}", "Node n1 is in this file twice"),
    "an unknown field that a cluster served": (f"{NODE.replace('n1', 'n1, uid: u')}spec: {{newer: 1}}\n", ""),
}


def _nodes_by_sentence(path: Path) -> str:
    return Files(path.parent, Own()).problem(NODES_OF, path.name, path.parent)


NODE_READERS = {
    "check": _by_check,
    "lint": _by_lint,
    "the nodes of": _nodes_by_sentence,
    "plan": _by_plan,
    "simulate": _by_simulate,
}


@pytest.mark.parametrize("reader", NODE_READERS)
@pytest.mark.parametrize("name", NODES)
def test_every_reader_of_nodes_says_the_same(tmp_path: Path, name: str, reader: str) -> None:
    text, refused = NODES[name]
    path = tmp_path / "nodes.yaml"
    path.write_text(text)
    found = NODE_READERS[reader](path)
    assert (refused.partition(";")[0] in found) if refused else not found


def _policy_by_lint(path: Path) -> str:
    return "\n".join(found.render() for found in lint(path.read_text(), str(path)) if found.is_error)


def _policy_by_sentence(path: Path) -> str:
    return Files(path.parent, Own()).problem(POLICY_OF, path.name, path.parent)


def _policy_by_run(path: Path) -> str:
    try:
        load_policy(path.read_text(), str(path))
    except PolicyError as refused:
        return str(refused)
    return ""


POLICY_READERS: dict[str, Callable[[Path], str]] = {
    "check": _by_check,
    "lint": _policy_by_lint,
    "the policy of": _policy_by_sentence,
    "a run, plan and simulate": _policy_by_run,
}


@pytest.mark.parametrize("reader", POLICY_READERS)
@pytest.mark.parametrize(("plugin", "refused"), [("gang", ""), ("gangg", "did you mean gang?")])
@pytest.mark.parametrize("name", POLICIES)
def test_every_reader_of_policies_says_the_same(
    tmp_path: Path, name: str, plugin: str, refused: str, reader: str
) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICIES[name] % plugin)
    found = POLICY_READERS[reader](path)
    assert (refused in found) if refused else not found
    line = (POLICIES[name] % plugin).split("gangg")[0].count("\n") + 1
    assert not refused or reader == "check" or f"policy.yaml:{line}:" in found
