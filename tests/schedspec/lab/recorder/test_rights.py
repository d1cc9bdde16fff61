"""The manifests in deploy/record permit to read exactly what a recording has, and are as hardened as the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner

from schedspec.cli import schedspec
from schedspec.lab.recorder.kinds import FOLLOWED

DEPLOY = Path(__file__).parents[4] / "deploy"
RECORD = DEPLOY / "record"


def objects(*files: Path) -> list[dict[str, Any]]:
    return [it for file in files for it in yaml.safe_load_all(file.read_text("utf-8"))]


def only(kind: str, *files: Path) -> dict[str, Any]:
    [found] = [it for it in objects(*files) if it["kind"] == kind]
    return found


def test_the_role_permits_to_list_and_watch_exactly_the_kinds_of_a_recording() -> None:
    role = only("ClusterRole", RECORD / "rbac.yaml")
    granted = {
        (group, plural, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for plural in rule["resources"]
        for verb in rule["verbs"]
    }
    kinds = {(it.resource.group, it.resource.plural) for it in FOLLOWED if not it.name}
    assert granted == {(*kind, verb) for kind in kinds for verb in ("list", "watch")}


def test_configurations_may_be_read_by_their_names_only() -> None:
    roles = [it for it in objects(*sorted((RECORD / "policy").glob("*.yaml"))) if it["kind"] == "Role"]
    granted = {
        (role["metadata"]["namespace"], name)
        for role in roles
        for rule in role["rules"]
        for name in rule["resourceNames"]
        if (rule["resources"], rule["verbs"]) == (["configmaps"], ["list", "watch"])
    }
    assert granted == {(it.namespace, it.name) for it in FOLLOWED if it.name}
    assert all(len(role["rules"]) == 1 for role in roles)


def test_the_recorder_is_one_replica_with_a_volume_and_a_read_only_root() -> None:
    deployment = only("Deployment", RECORD / "recorder.yaml")["spec"]
    pod = deployment["template"]["spec"]
    [container] = pod["containers"]
    assert (deployment["replicas"], deployment["strategy"]) == (1, {"type": "Recreate"})
    assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]) == (True, 65532)
    assert container["securityContext"] == {
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {mount["mountPath"] for mount in container["volumeMounts"]} == {"/recording", "/tmp"}
    labels = only("Namespace", RECORD / "namespace.yaml")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


def test_the_network_policy_is_that_of_the_scheduler() -> None:
    own, other = (only("NetworkPolicy", folder / "networkpolicy.yaml")["spec"] for folder in (RECORD, DEPLOY))
    assert {**own, "podSelector": None} == {**other, "podSelector": None}
    deployment = only("Deployment", RECORD / "recorder.yaml")["spec"]
    assert own["podSelector"] == deployment["selector"]
    assert deployment["template"]["metadata"]["labels"] == deployment["selector"]["matchLabels"]


def test_the_command_of_the_pod_has_the_options_that_it_names() -> None:
    [container] = only("Deployment", RECORD / "recorder.yaml")["spec"]["template"]["spec"]["containers"]
    assert container["command"] == ["python3", "-m", "schedspec", "record"]
    options = {option for it in schedspec.get_command(None, "record").params for option in it.opts}  # type: ignore[union-attr, arg-type]
    assert {argument.partition("=")[0] for argument in container["args"]} <= options
    assert CliRunner().invoke(schedspec, ["record", *container["args"], "--keep=never"]).exit_code == 2


def test_everything_is_listed_in_the_kustomization() -> None:
    listed = yaml.safe_load((RECORD / "kustomization.yaml").read_text("utf-8"))["resources"]
    assert {*listed, "kustomization.yaml"} == {path.name for path in RECORD.glob("*.yaml")}
