"""An embedded cluster boots, two clusters do not collide, and no process outlives its owner."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from schedspec.clusters import ClusterError, Settings, provide
from schedspec.clusters.embedded import EmbeddedCluster
from schedspec.clusters.lifecycle import ClusterLifecycle
from schedspec.clusters.programs import binaries
from schedspec.clusters.programs.pinned import EMBEDDED
from schedspec.clusters.protocol import Cluster, PortTakenError
from schedspec.clusters.registry import ClusterRecord, Registry
from schedspec.clusters.subprocess_run import programs_of
from tests.support.cluster_api import Api, ApiError, a_node, condition, phase, pod, within

ROOT = Path(__file__).parents[3]


@pytest.fixture
def api(embedded: EmbeddedCluster) -> Iterator[Api]:
    api = Api(embedded)
    yield api
    api.close()


@pytest.mark.embedded
def test_a_cluster_is_ready_when_up_returns(embedded: EmbeddedCluster, api: Api) -> None:
    assert isinstance(embedded, Cluster)
    facts = embedded.facts()
    assert facts.server_version.startswith("v1.")
    assert [part.split()[0] for part in facts.made_of] == ["etcd", "kube-apiserver", "kube-controller-manager", "kwok"]
    assert 0 < facts.boot_seconds < 60
    with a_node(api, "first-node") as name:
        api.create(api.pods, pod("first", name))  # its namespace has a service account already
        within(lambda: phase(api.get(f"{api.pods}/first")), lambda seen: seen == "Running")


@pytest.mark.embedded
def test_cel_in_admission_policies_is_enforced(api: Api) -> None:
    admission = "/apis/admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    validations = [{"expression": "!has(object.data) || !('forbidden' in object.data)", "message": "no such key"}]
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": validations}
    api.create(f"{admission}/validatingadmissionpolicies", {"metadata": {"name": "keys"}, "spec": spec})
    binding = {"policyName": "keys", "validationActions": ["Deny"]}
    api.create(f"{admission}/validatingadmissionpolicybindings", {"metadata": {"name": "keys"}, "spec": binding})

    def refusal() -> str:
        maps = "/api/v1/namespaces/default/configmaps"
        with contextlib.suppress(ApiError):
            api.delete(f"{maps}/probe")
        try:
            api.create(maps, {"metadata": {"name": "probe"}, "data": {"forbidden": "x"}})
        except ApiError as error:
            return str(error)
        return ""

    assert "no such key" in within(refusal)


@pytest.mark.embedded
def test_cel_in_custom_resource_definitions_is_enforced(api: Api) -> None:
    rule = {"rule": "self.low <= self.high", "message": "low is above high"}
    numbers = {"low": {"type": "integer"}, "high": {"type": "integer"}}
    spec = {"type": "object", "properties": numbers, "x-kubernetes-validations": [rule]}
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "ranges", "singular": "range", "kind": "Range"}
    definition = {"group": "example.test", "scope": "Cluster", "names": names, "versions": [version]}
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    api.create(crds, {"metadata": {"name": "ranges.example.test"}, "spec": definition})
    path = f"{crds}/ranges.example.test"
    within(lambda: condition(api.get(path), "Established"), lambda seen: seen == "True")
    ranges = "/apis/example.test/v1/ranges"
    within(lambda: api.get(ranges))
    wrong = {"apiVersion": "example.test/v1", "kind": "Range", "metadata": {"name": "r"}, "spec": {"low": 2, "high": 1}}
    with pytest.raises(ApiError, match="low is above high"):
        api.create(ranges, wrong)
    api.create(ranges, wrong | {"spec": {"low": 1, "high": 2}})
    api.delete(path)


@pytest.mark.embedded
def test_down_removes_the_cluster(state: Path) -> None:
    cluster = provide(Settings(kind="embedded"))
    cluster.up(print)
    (record,) = Registry().records()
    assert len(programs_of(record.home)) == 4
    cluster.down()
    cluster.down()
    _wait_until_removed(record)


@pytest.mark.embedded
@pytest.mark.parametrize(
    ("when", "end"),
    [
        ("booting", signal.SIGKILL),
        ("up", signal.SIGINT),
        ("up", signal.SIGTERM),
        pytest.param("booting", signal.SIGINT, marks=pytest.mark.nightly),
        pytest.param("booting", signal.SIGTERM, marks=pytest.mark.nightly),
        pytest.param("up", signal.SIGKILL, marks=pytest.mark.nightly),
    ],
)
def test_a_killed_run_leaves_no_cluster_behind(state: Path, when: str, end: signal.Signals) -> None:
    script = """
        import time
        from schedspec.clusters import Settings, provide
        cluster = provide(Settings(kind="embedded"))
        try:
            cluster.up(lambda line: print(line, flush=True))
            print("up", flush=True)
            time.sleep(60)
        finally:
            cluster.down()
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as run:
        assert run.stdout is not None
        next(line for line in run.stdout if when in line.split())
        record = within(lambda: next(iter(Registry().records()), None))
        if when == "booting":
            within(lambda: programs_of(record.home))
        run.send_signal(end)
    _wait_until_removed(record)


def _wait_until_removed(record: ClusterRecord) -> None:
    within(lambda: not programs_of(record.home))
    within(lambda: not record.home.exists())
    within(lambda: not Registry().records())
    within(lambda: [port for port in record.ports if _listens(port)], lambda left: not left)


def _commands() -> list[list[str]]:
    """Return the command lines of all processes."""
    return [it.info["cmdline"] or [] for it in psutil.process_iter(["cmdline"])]


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.embedded
def test_a_kept_cluster_outlives_its_run_and_down_removes_it(state: Path) -> None:
    command = [sys.executable, "-m", "schedspec"]
    up = subprocess.run([*command, "up", "--cluster", "embedded"], cwd=ROOT, capture_output=True, text=True, check=True)
    (record,) = Registry().records()
    assert up.stdout == f"export KUBECONFIG={record.kubeconfig}\n"
    within(lambda: not [line for line in _commands() if line[-2:] == ["schedspec.clusters.reaper", record.name]])
    assert len(programs_of(record.home)) == 4
    listed = subprocess.run([*command, "list"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert record.name in listed.stdout
    assert "kept" in listed.stdout
    subprocess.run([*command, "down"], cwd=ROOT, capture_output=True, check=True)
    _wait_until_removed(record)


@pytest.mark.embedded
def test_a_reused_cluster_is_found_again_and_has_one_user_at_a_time(state: Path) -> None:
    settings = Settings(kind="embedded", reuse=True)
    first, second = EmbeddedCluster(settings), EmbeddedCluster(settings)
    try:
        first.up(print)
        name, kubeconfig = first.name, first.kubeconfig
        first.down()
        second.up(print)
        assert (second.name, second.kubeconfig) == (name, kubeconfig)
        assert second.facts().boot_seconds == 0
        third = ClusterLifecycle("embedded", name.removeprefix("embedded-"), settings)
        assert not third.adopt(lambda record: True)
        assert third.name == f"{name}-2"
        third.end()
    finally:
        first.down()
        second.down()
        record = Registry().find(first.name)
        assert record is not None
        subprocess.run([sys.executable, "-m", "schedspec", "down", record.name], cwd=ROOT, check=True)
    _wait_until_removed(record)


@pytest.mark.embedded
def test_a_port_taken_after_its_choice_leads_to_other_ports(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    messages: list[str] = []
    add = Registry.add
    with socket.create_server(("127.0.0.1", 0)) as squatter:
        taken = squatter.getsockname()[1]

        def unlucky(registry: Registry, record: ClusterRecord, *, ports: int = 0) -> ClusterRecord:
            record = add(registry, record, ports=ports)
            lucky = any("trying other ports" in line for line in messages)
            return record if lucky else replace(record, ports=(taken, *record.ports[1:]))

        monkeypatch.setattr(Registry, "add", unlucky)
        cluster = EmbeddedCluster(Settings(kind="embedded"))
        cluster.up(messages.append)
        cluster.down()
    assert any(f"port {taken} was taken" in line and "trying other ports" in line for line in messages)
    assert not Registry().records()


@pytest.mark.embedded
def test_a_controller_manager_that_stopped_waiting_is_restarted(state: Path, tmp_path: Path) -> None:
    real = binaries.provide(EMBEDDED, folder=None, progress=print)["kube-controller-manager"].path
    folder, has_failed = tmp_path / "programs", tmp_path / "has-failed"
    folder.mkdir()
    program = folder / "kube-controller-manager"
    program.write_text(
        "#!/bin/sh\n"
        f'case "$*" in *--version*) exec {real} "$@";; esac\n'
        f'test -e {has_failed} && exec {real} "$@"\n'
        f"touch {has_failed}; echo 'failed to wait for apiserver being healthy: timed out' >&2; exit 1\n"
    )
    program.chmod(0o755)
    messages: list[str] = []
    cluster = EmbeddedCluster(Settings(kind="embedded", binaries=folder))
    cluster.up(messages.append)
    cluster.down()
    assert [line.partition(": ")[2] for line in messages][-2:] == [
        "booting",
        "the API server was late; restarting kube-controller-manager",
    ]


@pytest.mark.embedded
def test_the_error_for_a_failed_program_quotes_its_output(state: Path, tmp_path: Path) -> None:
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "etcd").write_text("#!/bin/sh\necho no such thing >&2\nexit 1\n")
    (folder / "etcd").chmod(0o755)
    with pytest.raises(ClusterError, match="the boot of the embedded cluster failed") as caught:
        EmbeddedCluster(Settings(kind="embedded", binaries=folder)).up(print)
    assert "no such thing" in str(caught.value)
    assert not isinstance(caught.value, PortTakenError)
    assert not Registry().records()
