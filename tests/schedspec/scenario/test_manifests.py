"""A team's own manifests: found beside the feature, and reduced to the fields that users write."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from schedspec.scenario import manifests
from schedspec.scenario.manifests import ManifestError

QUEUES = """\
apiVersion: v1
kind: List
items:
- apiVersion: scheduling.volcano.sh/v1beta1
  kind: Queue
  metadata:
    name: research
    uid: 1-2-3
    resourceVersion: "4711"
    annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}", team: ml}
  spec: {deserved: {nvidia.com/gpu: 8}}
  status: {state: Open}
- apiVersion: v1
  kind: Service
  metadata: {name: not-a-queue}
"""
NODE = """\
apiVersion: v1
kind: Node
metadata: {name: gpu-1, uid: x, labels: {nvidia.com/gpu.product: H100}}
spec:
  podCIDR: 10.0.0.0/24
  taints: [{key: node.kubernetes.io/not-ready, effect: NoSchedule}, {key: gpu, effect: NoSchedule}]
status:
  capacity: {cpu: "64", nvidia.com/gpu: "8"}
  allocatable: {cpu: "60", nvidia.com/gpu: "8"}
  conditions: [{type: Ready, status: "False"}]
"""
POLICY = 'actions: "allocate"\ntiers: []\n'
CONFIG_MAP = f"""\
kind: ConfigMap
apiVersion: v1
metadata: {{name: volcano-scheduler-configmap}}
data:
  volcano-scheduler.conf: |
{textwrap.indent(POLICY, "    ")}"""


def written(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_queues_keep_the_fields_that_users_write(tmp_path: Path) -> None:
    (queue,) = manifests.queues(written(tmp_path, "queues.yaml", QUEUES))
    assert queue.object == {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "research", "annotations": {"team": "ml"}},
        "spec": {"deserved": {"nvidia.com/gpu": 8}},
    }


def test_nodes_become_kwok_nodes_with_the_same_labels_taints_and_resources(tmp_path: Path) -> None:
    (node,) = manifests.nodes(written(tmp_path, "nodes.yaml", NODE))
    labels, notes = node.object["metadata"]["labels"], node.object["metadata"]["annotations"]
    assert (labels["nvidia.com/gpu.product"], labels["schedspec.dev/world"]) == ("H100", "true")
    assert notes == {"kwok.x-k8s.io/node": "fake"}
    assert node.object["spec"] == {"taints": [{"key": "gpu", "effect": "NoSchedule"}]}
    assert node.object["status"]["allocatable"] == {"cpu": "60", "nvidia.com/gpu": "8"}
    assert set(node.object["status"]) == {"allocatable", "capacity"}


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("data:\n  p.conf: |\n    marker: 1", 3),
        ("data:\n  p.conf: 'marker: 1'", 2),
        ("kind: List\nitems:\n- data: {other: 1}\n- data:\n    p.conf: |\n      marker: 1", 6),
    ],
)
def test_a_policy_in_a_larger_file_keeps_its_line(tmp_path: Path, content: str, line: int) -> None:
    text = manifests.policy(written(tmp_path, "map.yaml", content))
    assert text.splitlines().index("marker: 1") + 1 == line


@pytest.mark.parametrize("text", [POLICY, CONFIG_MAP], ids=["plain", "ConfigMap"])
def test_a_policy_is_read_from_a_file_or_from_its_configmap(tmp_path: Path, text: str) -> None:
    assert manifests.policy(written(tmp_path, "volcano-scheduler.conf", text)).strip() == POLICY.strip()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("kind: Service\n", "no object of kind Queue"),
        ("a: [", "not YAML"),
        ("- 1\n", "no object of kind Queue"),
    ],
)
def test_the_error_for_a_file_without_queues_names_the_file(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ManifestError, match=problem) as raised:
        manifests.queues(written(tmp_path, "queues.yaml", text))
    assert "queues.yaml" in str(raised.value)


def test_a_file_beside_the_feature_comes_first_and_a_missing_file_has_a_hint(tmp_path: Path) -> None:
    beside, root = tmp_path / "features", tmp_path
    beside.mkdir()
    written(root, "queues.yaml", QUEUES)
    assert manifests.find("queues.yaml", [beside, root]) == root / "queues.yaml"
    own = written(beside, "queues.yaml", QUEUES)
    assert manifests.find("queues.yaml", [beside, root]) == own
    with pytest.raises(ManifestError, match=r"no file 'queue.yaml' \(is 'queues.yaml' meant\?\)"):
        manifests.find("queue.yaml", [beside, root])


@pytest.mark.parametrize("name", ["/etc/passwd", "../../secret.yaml", "link.yaml"])
def test_a_file_outside_of_the_repository_is_not_read(tmp_path: Path, name: str) -> None:
    features = tmp_path / "team" / "features"
    (features / ".git").mkdir(parents=True)
    secret = written(tmp_path, "secret.yaml", "a: b\n")
    (features / "link.yaml").symlink_to(secret)
    with pytest.raises(ManifestError, match="is outside of the repository"):
        manifests.find(name, (features,))


def test_a_file_elsewhere_in_the_repository_is_read(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "features").mkdir()
    queues = written(tmp_path, "queues.yaml", QUEUES)
    assert manifests.find("../queues.yaml", (tmp_path / "features",)).resolve() == queues.resolve()


def test_a_name_that_no_file_has_is_not_suggested_for_itself(tmp_path: Path) -> None:
    (tmp_path / "queues.yaml").symlink_to("queues.yaml")
    with pytest.raises(manifests.ManifestError, match=r"there is no file 'queues.yaml'\n"):
        manifests.find("queues.yaml", [tmp_path])


KUEUE = """\
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: a, uid: x}
spec: {cohort: all, namespaceSelector: {matchLabels: {team: a}}, queueingStrategy: StrictFIFO}
status: {pendingWorkloads: 3}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: Cohort
metadata: {name: all}
spec: {parent: company}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: a, namespace: team-a}
spec: {clusterQueue: a}
---
apiVersion: v1
kind: Namespace
metadata: {name: team-a}
"""


def test_queues_of_kueue_are_those_of_the_namespace_of_a_scenario(tmp_path: Path) -> None:
    found = manifests.kueue_queues(written(tmp_path, "queues.yaml", KUEUE))
    queue, cohort, local = (it.object for it in found)
    assert {it.object["apiVersion"] for it in found} == {"kueue.x-k8s.io/v1beta2"}
    assert queue["spec"] == {"cohortName": "all", "namespaceSelector": {}, "queueingStrategy": "StrictFIFO"}
    assert cohort["spec"] == {"parentName": "company"}
    assert local["metadata"] == {"name": "a"}


CHECKED = (
    KUEUE.replace("queueingStrategy: StrictFIFO", "admissionChecks: [budget]")
    + """
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: AdmissionCheck
metadata: {name: budget}
spec:
  controllerName: kueue.x-k8s.io/provisioning-request
  retryDelayMinutes: 5
  parameters: {apiGroup: kueue.x-k8s.io, kind: ProvisioningRequestConfig, name: c}
"""
)


def test_admission_checks_are_left_to_the_scenario(tmp_path: Path) -> None:
    queue, *_, check = (it.object for it in manifests.kueue_queues(written(tmp_path, "queues.yaml", CHECKED)))
    assert queue["spec"]["admissionChecksStrategy"] == {"admissionChecks": [{"name": "budget"}]}
    assert "admissionChecks" not in queue["spec"]
    assert check["spec"] == {"controllerName": "schedspec.dev/scenario"}


def test_local_queues_of_several_namespaces_stay_apart(tmp_path: Path) -> None:
    local = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nspec: {clusterQueue: a}\n"
    text = "---\n".join(f"{local}metadata: {{name: main, namespace: {space}}}\n" for space in ("red", "blue"))
    found = manifests.kueue_queues(written(tmp_path, "queues.yaml", text), "spec-1")
    assert [it.object["metadata"]["namespace"] for it in found] == ["spec-1-red", "spec-1-blue"]


STRATEGY = "admissionChecksStrategy: {admissionChecks: [{name: budgte, onFlavors: [spot]}]}"


@pytest.mark.parametrize("wrong", ["admissionChecks: [budgte]", STRATEGY])
def test_a_queue_names_only_admission_checks_of_its_file(tmp_path: Path, wrong: str) -> None:
    path = written(tmp_path, "queues.yaml", CHECKED.replace("admissionChecks: [budget]", wrong))
    with pytest.raises(ManifestError) as refused:
        manifests.kueue_queues(path)
    line = path.read_text("utf-8").splitlines().index("kind: ClusterQueue")
    assert str(refused.value).startswith(f"{path}:{line}: ClusterQueue a names an admission check 'budgte'")
    assert "budget" in str(refused.value).partition("budgte")[2].splitlines()[0]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (KUEUE.replace("LocalQueue", "Topology"), "no LocalQueue"),
        (QUEUES, "no LocalQueue"),
        (f"{KUEUE}---\n{KUEUE}", "two objects ClusterQueue a"),
    ],
    ids=["no LocalQueue", "Volcano's queues", "two of one name"],
)
def test_queues_of_kueue_without_which_no_job_could_start_are_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(ManifestError, match=says):
        manifests.kueue_queues(written(tmp_path, "queues.yaml", text))
