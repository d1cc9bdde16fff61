"""The manifests in deploy/ have all that the scheduler needs, and only what a hardened cluster admits."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from schedspec.scheduler.lint import lint
from schedspec.scheduler.live.options import CONTROLLERS, ONLY_CONTROLLERS, RUN, parse

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
HARDENED = {
    "readOnlyRootFilesystem": True,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
}
IMPORTED_AS = {
    "pyyaml": "yaml",
    "prometheus-client": "prometheus_client",
    "google-re2": "re2",
    "common-expression-language": "cel",
}


def _versions(lock: Path) -> dict[str, str]:
    return dict(re.findall(r"^([\w.-]+)==([\w.]+)", lock.read_text("utf-8"), re.MULTILINE))


def _imported() -> set[str]:
    """Return the third-party packages that scheduler/ imports."""
    found = set()
    for source in (ROOT / "scheduler").rglob("*.py"):
        for node in ast.walk(ast.parse(source.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names - {"scheduler"}


def _objects(manifest: str = "deployment") -> dict[str, dict[str, Any]]:
    documents = [
        it for name in (manifest, "namespace") for it in yaml.safe_load_all((DEPLOY / f"{name}.yaml").read_text())
    ]
    return {it["kind"]: it for it in documents}


@pytest.fixture(params=["deployment", "controllers"])
def manifest(request: pytest.FixtureRequest) -> str:
    """Return the name of a manifest: that of the scheduler, or that of the controllers."""
    return str(request.param)


@pytest.fixture
def deployment(manifest: str) -> dict[str, Any]:
    spec: dict[str, Any] = _objects(manifest)["Deployment"]["spec"]
    return spec


@pytest.fixture
def container(deployment: dict[str, Any]) -> dict[str, Any]:
    (only,) = deployment["template"]["spec"]["containers"]
    return dict(only)


def test_the_image_has_the_tested_versions() -> None:
    tested, shipped = _versions(ROOT / "requirements.lock"), _versions(DEPLOY / "requirements.lock")
    assert shipped
    assert {name: version for name, version in shipped.items() if tested.get(name) != version} == {}


def test_the_image_has_exactly_the_packages_that_the_scheduler_imports() -> None:
    lines = (line.partition("#")[0].strip() for line in (DEPLOY / "requirements.in").read_text().splitlines())
    listed = [line for line in lines if line]
    assert {IMPORTED_AS.get(name, name) for name in listed} == _imported()


def test_every_locked_package_has_hashes_and_no_url() -> None:
    text = (DEPLOY / "requirements.lock").read_text("utf-8")
    parts = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)
    assert [part.partition("\n")[0] for part in parts[1:] if "--hash=sha256:" not in part] == []
    assert "://" not in text


def test_the_image_is_built_on_any_base_and_does_not_run_as_root() -> None:
    lines = (DEPLOY / "Dockerfile").read_text("utf-8").splitlines()
    assert [line for line in lines if line.startswith("FROM ") and "${BASE}" not in line] == []
    assert "USER 65532:65532" in lines


def test_the_pods_are_restricted_and_their_root_is_read_only(
    deployment: dict[str, Any], container: dict[str, Any]
) -> None:
    pod = deployment["template"]["spec"]["securityContext"]
    assert (pod["runAsNonRoot"], pod["runAsUser"]) == (True, 65532)
    assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == HARDENED
    assert _objects()["Namespace"]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_two_replicas_elect_a_leader_and_are_the_last_to_be_evicted_by_kubelets(
    deployment: dict[str, Any], container: dict[str, Any]
) -> None:
    pod = deployment["template"]["spec"]
    assert deployment["replicas"] == 2
    assert "--leader-elect" in container["args"]
    assert pod["priorityClassName"] == "system-cluster-critical"
    assert "node-role.kubernetes.io/control-plane" in [it["key"] for it in pod["tolerations"]]
    assert container["resources"]["requests"].keys() == {"cpu", "memory"}


def test_a_drain_leaves_one_replica_and_is_never_blocked_by_an_unhealthy_one(
    manifest: str, deployment: dict[str, Any]
) -> None:
    objects = _objects(manifest)
    budget = objects["PodDisruptionBudget"]
    assert budget["spec"]["selector"] == deployment["selector"]
    assert budget["spec"]["maxUnavailable"] == deployment["replicas"] - 1
    assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    assert budget["metadata"]["namespace"] == objects["Deployment"]["metadata"]["namespace"]


def test_the_probes_request_pages_that_the_scheduler_serves(container: dict[str, Any]) -> None:
    served = "".join(source.read_text("utf-8") for source in (ROOT / "scheduler/live").glob("*.py"))
    for probe, page in (("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
        assert container[probe]["httpGet"]["path"] == page
        assert f'"{page}":' in served


@pytest.mark.parametrize("manifest", ["deployment"], indirect=True)
def test_the_policy_is_mounted_as_a_folder_so_that_changes_reach_the_scheduler(
    deployment: dict[str, Any], container: dict[str, Any]
) -> None:
    (mount,) = container["volumeMounts"]
    (volume,) = deployment["template"]["spec"]["volumes"]
    assert f"--policy={mount['mountPath']}/policy.yaml" in container["args"]
    assert "subPath" not in mount, "a file that is mounted alone never changes"
    assert (mount["name"], volume["configMap"]["name"]) == (volume["name"], "schedspec-policy")
    kustomization = yaml.safe_load((DEPLOY / "kustomization.yaml").read_text())
    assert kustomization["generatorOptions"]["disableNameSuffixHash"] is True


def test_each_program_accepts_its_arguments(manifest: str, container: dict[str, Any]) -> None:
    command, *arguments = container["args"]
    options = parse(arguments, RUN if manifest == "deployment" else ONLY_CONTROLLERS)
    assert command == {"deployment": "run", "controllers": "controllers"}[manifest]
    assert (options.listen, options.lease_namespace) == (("0.0.0.0", 8080), "schedspec")
    assert options.controllers == {"deployment": (), "controllers": CONTROLLERS}[manifest]


def test_only_scrapers_can_connect_to_the_pods(deployment: dict[str, Any]) -> None:
    policy = yaml.safe_load((DEPLOY / "networkpolicy.yaml").read_text())["spec"]
    (chosen,) = policy["podSelector"]["matchExpressions"]
    assert deployment["template"]["metadata"]["labels"][chosen["key"]] in chosen["values"]
    (rule,) = policy["ingress"]
    assert [peer.keys() for peer in rule["from"]] == [{"namespaceSelector"}]
    (out,) = policy["egress"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert [(it["protocol"], it["port"]) for it in out["ports"]] == [("TCP", 443), ("TCP", 6443), ("TCP", 8443)]


def test_nobody_connects_to_a_shard_of_the_suite_and_it_connects_to_nobody() -> None:
    policy = yaml.safe_load((DEPLOY / "suite/networkpolicy.yaml").read_text())["spec"]
    labels = yaml.safe_load((DEPLOY / "suite/job.yaml").read_text())["spec"]["template"]["metadata"]["labels"]
    assert policy == {"podSelector": {"matchLabels": labels}, "policyTypes": ["Ingress", "Egress"]}
    assert "networkpolicy.yaml" in yaml.safe_load((DEPLOY / "suite/kustomization.yaml").read_text())["resources"]


def test_an_account_can_change_only_its_own_lease() -> None:
    documents = list(yaml.safe_load_all((DEPLOY / "rbac.yaml").read_text()))
    roles = {it["metadata"]["name"]: it["rules"] for it in documents if it["kind"] == "Role"}
    for binding in (it for it in documents if it["kind"] == "RoleBinding"):
        (account,) = binding["subjects"]
        for rule in roles[binding["roleRef"]["name"]]:
            assert rule["verbs"] == ["create"] or rule["resourceNames"] == [account["name"]]
    leases = [rule for it in documents if it["kind"] == "ClusterRole" for rule in it["rules"]]
    assert [rule for rule in leases if "leases" in rule["resources"]] == []


def test_every_manifest_is_applied() -> None:
    applied = set(yaml.safe_load((DEPLOY / "kustomization.yaml").read_text())["resources"])
    existing = {path.name for path in DEPLOY.glob("*.yaml")} - {"kustomization.yaml", "policy.yaml"}
    assert applied == {*existing, "../scheduler/crds"}


def test_the_example_of_a_quota_counts_kinds_that_exist() -> None:
    hard = yaml.safe_load((DEPLOY / "examples/tenant-quota.yaml").read_text())["spec"]["hard"]
    counted = {key.removeprefix("count/") for key in hard if key.endswith(("volcano.sh", "kubeflow.org"))}
    defined = {
        document["metadata"]["name"]
        for file in (ROOT / "scheduler/crds").glob("*.yaml")
        for document in yaml.safe_load_all(file.read_text("utf-8"))
        if document["kind"] == "CustomResourceDefinition"
    }
    assert counted <= defined


def test_lint_finds_nothing_in_the_deployed_policy_but_what_volcano_would_do() -> None:
    policy = DEPLOY / "policy.yaml"
    found = lint(policy.read_text("utf-8"), policy.name, [])
    assert [finding.render() for finding in found if not finding.text.startswith("portability: ")] == []
