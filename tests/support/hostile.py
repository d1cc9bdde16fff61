"""Define the attacks of a hostile tenant: the objects that each attack creates.

`tests.soak.attacks` measures one attack after the other; `tests.soak.churn` draws attacks at random. A new attack is a
function here and an entry of `ATTACKS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from schedspec.scheduler.controllers.runtime.objects import (
    COMMANDS,
    CONFIG_MAPS,
    JOBS,
    NETWORK_POLICIES,
    PYTORCH_JOBS,
    SERVICES,
)
from schedspec.scheduler.kube import BUDGETS, PODGROUPS, PODS, QUEUES, QUOTAS, Resource
from tests.support.live.api_objects import pod_body

Body = dict[str, Any]
Created = Iterator[tuple[Resource[Any], Body]]
HOSTNAME = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
OPERATORS = {"In": ["x"], "NotIn": ["x"], "Exists": [], "DoesNotExist": [], "Gt": ["1"], "Lt": ["1"]}
EXPRESSIONS = [
    (strength, "matchExpressions", key, operator)
    for strength in (REQUIRED, PREFERRED)
    for key in (HOSTNAME, "unknown")
    for operator in OPERATORS
] + [
    (strength, "matchFields", "metadata.name", operator)
    for strength in (REQUIRED, PREFERRED)
    for operator in ("In", "NotIn")
]
"""Each kind of expression about nodes that the API server accepts."""
KEPT = "schedspec.dev/attack"
"""A finalizer that is removed only when the attack ends."""
BYSTANDER = "schedspec.dev/bystander"
"""A label of objects that an attack tries to change, and that must stay as they are."""
OF_VICTIM = "{uid of the victim}"
"""A placeholder for the uid of the Job `VICTIM` in the other tenant's namespace."""
VICTIM = "victim"
DECADES = 10**9


@dataclass(frozen=True)
class Attack:
    """One attack: `make(name, number)` yields its objects; `number` is its full size."""

    what: str
    number: int
    make: Callable[[str, int], Created]
    quiet: float = 3.0
    """Seconds over which the CPU time of the idle scheduler is measured; more for an attack that causes retries."""
    options: tuple[str, ...] = ()
    """Command-line options of the attacked scheduler."""
    queue: str = "default"
    """Queue of the gangs beside the attack."""
    cpu: str = "100m"
    """The cpu that each pod of these gangs requests."""
    more: float = 0.0
    """Additional seconds that a gang may take because of `options`."""
    is_first: bool = False
    """Whether the attacker's namespace sorts before that of the gangs: no name may be served later because of it."""


def attached(name: str, spec: Body, cpu: str = "10m") -> Created:
    """Yield a gang of one pod with this spec."""
    yield PODGROUPS, {"metadata": {"name": name}, "spec": {"minMember": 1, "queue": "default"}}
    body = pod_body(name, name, cpu)
    main = body["spec"]["containers"][0]
    container = spec.get("containers", [{}])[0]
    body["spec"] |= {**spec, "containers": [{**main, **container}]}
    yield PODS, body


def _each(name: str, number: int, spec: Callable[[int], Body]) -> Created:
    for i in range(number):
        yield from attached(f"{name}-{i}", spec(i))


def _required(terms: int) -> Body:
    found = [{"matchExpressions": [{"key": f"k{i}", "operator": "Exists"}]} for i in range(terms)]
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": found}}}


def spread_times_terms(name: str, number: int) -> Created:
    """Yield pods with 3,000 spread constraints and 1,000 node terms each, 371 kB."""
    constraints = [
        {
            "maxSkew": 1,
            "topologyKey": f"t{i}",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"a": "b"}},
        }
        for i in range(3_000)
    ]
    return _each(name, number, lambda _: {"topologySpreadConstraints": constraints, "affinity": _required(1_000)})


def terms(name: str, number: int) -> Created:
    """Yield pods with 15,000 node terms each."""
    return _each(name, number, lambda _: {"affinity": _required(15_000)})


def expressions(name: str, number: int) -> Created:
    """Yield pods with 800 expressions about nodes each; each kind of expression occurs in turn."""

    def spec(i: int) -> Body:
        strength, field, key, operator = EXPRESSIONS[i % len(EXPRESSIONS)]
        values = OPERATORS[operator]
        term = {field: [{"key": key, "operator": operator, **({"values": values} if values else {})}] * 800}
        if strength == REQUIRED:
            return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}}
        return {"affinity": {"nodeAffinity": {PREFERRED: [{"weight": 1, "preference": term}]}}}

    return _each(name, number, spec)


def preferred_terms(name: str, number: int) -> Created:
    """Yield pods with 100 preferred affinity terms about the pods of all namespaces; the pods are bound."""

    def spec(i: int) -> Body:
        keys = [{"key": f"{name}-{i}-{k}", "operator": "DoesNotExist"} for k in range(100)]
        terms_ = [
            {"topologyKey": HOSTNAME, "namespaceSelector": {}, "labelSelector": {"matchExpressions": [key]}}
            for key in keys
        ]
        return {"affinity": {"podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": term} for term in terms_]}}}

    return _each(name, number, spec)


def scoped_quotas(name: str, number: int) -> Created:
    """Yield ResourceQuotas with a scope of 20 priority classes each, and PodGroups whose minimum they must permit."""
    for i in range(number):
        values = [f"{name}-{i}-{k}" for k in range(20)]
        selector = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "NotIn", "values": values}]}
        spec = {"hard": {"requests.cpu": "1"}, "scopeSelector": selector}
        yield QUOTAS, {"metadata": {"name": f"{name}-{i}"}, "spec": spec}
        if i % 100 == 0:
            least = {"minMember": 1, "queue": "default", "minResources": {"cpu": "2"}}
            yield PODGROUPS, {"metadata": {"name": f"{name}-{i}"}, "spec": least}


def long_names(name: str, number: int) -> Created:
    """Yield pods whose annotation names a PodGroup by 240,000 characters."""
    for i in range(number):
        yield PODS, pod_body(f"{name}-{i}", f"{name}-{i}-{'x' * 240_000}", "10m")


def ports(name: str, number: int) -> Created:
    """Yield pods with 4,000 host ports each."""

    def spec(i: int) -> Body:
        first = 1 + i * 4_000 % 60_000
        return {"containers": [{"ports": [{"containerPort": p, "hostPort": p} for p in range(first, first + 4_000)]}]}

    return _each(name, number, spec)


def pod_terms(name: str, number: int) -> Created:
    """Yield pods with 100 required affinity terms each; each term matches all pods."""

    def spec(i: int) -> Body:
        items = [{"key": f"{name}-{i}-{k}", "operator": "DoesNotExist"} for k in range(100)]
        found = [
            {"topologyKey": HOSTNAME, "namespaceSelector": {}, "labelSelector": {"matchExpressions": [item]}}
            for item in items
        ]
        return {"affinity": {"podAffinity": {REQUIRED: found}}}

    return _each(name, number, spec)


def resource_names(name: str, number: int) -> Created:
    """Yield pods that request 6,000 resources each."""

    def spec(i: int) -> Body:
        names = {f"example.com/{name}-{i}-{k}": "1" for k in range(6_000)}
        return {"containers": [{"resources": {"requests": names, "limits": names}}]}

    return _each(name, number, spec)


def foreign(name: str, number: int) -> Created:
    """Yield pods of another scheduler with 1.3 MB of tolerations each."""
    tolerations = [{"key": f"k{i}", "operator": "Exists"} for i in range(35_000)]
    for i in range(number):
        containers = [{"name": "main", "image": "worker"}]
        spec = {"schedulerName": "nobody", "containers": containers, "tolerations": tolerations}
        yield PODS, {"metadata": {"name": f"{name}-{i}"}, "spec": spec}


def shapes(name: str, number: int) -> Created:
    """Yield gangs that never fit, each with a request and a node selector of its own."""
    for i in range(number):
        yield from attached(f"{name}-{i}", {"nodeSelector": {"shape": f"{name}-{i}"}}, cpu=f"{50_000 + i}m")


def budgets(name: str, number: int) -> Created:
    """Yield disruption budgets."""
    for i in range(number):
        spec = {"maxUnavailable": 1, "selector": {"matchExpressions": [{"key": f"k{i}", "operator": "DoesNotExist"}]}}
        yield BUDGETS, {"metadata": {"name": f"{name}-{i}"}, "spec": spec}


def nested_queues(name: str, number: int) -> Created:
    """Yield queues, each the child of the one before."""
    for i in range(number):
        parent = f"{name}-{i - 1}" if i else "root"
        yield QUEUES, {"metadata": {"name": f"{name}-{i}"}, "spec": {"weight": 1, "parent": parent}}


def junk(name: str, number: int) -> Created:
    """Yield PodGroups, Jobs and pods with meaningless values."""
    for i in range(number // 4):
        body = pod_body(f"{name}-{i}", "nowhere", "10m")
        body["metadata"]["annotations"] |= {"volcano.sh/task-priority": "NaN"}
        yield PODS, body
        quantity = {"minMember": 1, "queue": "nowhere", "minResources": {"cpu": "1", "a.b/c": "9" * 40}}
        yield PODGROUPS, {"metadata": {"name": f"{name}-g{i}"}, "spec": quantity}
        yield PODGROUPS, {"metadata": {"name": f"{name}-h{i}"}, "spec": {"minMember": 1, "minResources": {"cpu": "½"}}}
        template = {"spec": {"containers": [{"name": "x", "image": "i", "resources": {"requests": {"cpu": "½"}}}]}}
        spec = {"schedulerName": "schedspec", "minAvailable": 1, "tasks": [{"replicas": 1, "template": template}]}
        yield JOBS, {"metadata": {"name": f"{name}-j{i}"}, "spec": spec}


def commands(name: str, number: int) -> Created:
    """Yield Commands whose finalizer prevents their deletion."""
    for i in range(number):
        target = {"apiVersion": QUEUES.api_version, "kind": "Queue", "name": "default", "uid": ""}
        meta = {"name": f"{name}-{i}", "finalizers": [KEPT]}
        yield COMMANDS, {"metadata": meta, "action": "CloseQueue", "target": target}


def ghosts(name: str, number: int) -> Created:
    """Yield PodGroups without pods that reserve 1,000 CPUs each."""
    for i in range(number):
        spec = {"minMember": 1, "queue": "default", "minResources": {"cpu": "1000", "memory": "1Ti"}}
        yield PODGROUPS, {"metadata": {"name": f"{name}-{i}"}, "spec": spec}


def giants(name: str, number: int) -> Created:
    """Yield PodGroups of 150,000 members, and Jobs of 150,000 replicas."""
    for i in range(number):
        yield PODGROUPS, {"metadata": {"name": f"{name}-{i}"}, "spec": {"minMember": 150_000, "queue": "default"}}
        template = {"spec": {"containers": [{"name": "x", "image": "i", "resources": {"requests": {"cpu": "50"}}}]}}
        tasks = [{"replicas": 150_000, "template": template}]
        yield JOBS, {"metadata": {"name": f"{name}-j{i}"}, "spec": {"schedulerName": "schedspec", "tasks": tasks}}


def anti_affinity(name: str, number: int) -> Created:
    """Yield pods with 100 equal required anti-affinity terms each."""
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"a": "b"}}}
    return _each(name, number, lambda _: {"affinity": {"podAntiAffinity": {REQUIRED: [term] * 100}}})


def templates(name: str, number: int) -> Created:
    """Yield Jobs with a template of 0.8 MB that consists of empty JSON objects."""
    template = {"spec": {"containers": [{"name": "x", "image": "i"}], "x": [{}] * 200_000}}
    for i in range(number):
        tasks = [{"replicas": 1, "template": template}]
        yield JOBS, {"metadata": {"name": f"{name}-{i}"}, "spec": {"schedulerName": "schedspec", "tasks": tasks}}


def taken_names(name: str, number: int) -> Created:
    """Yield objects of another owner, and Jobs and PyTorchJobs that need the same names."""
    template = {"spec": {"containers": [{"name": "pytorch", "image": "i"}], "schedulerName": "somebody"}}
    for i in range(number):
        job, torch = f"{name}-{i}", f"{name}-t{i}"
        for resource, taken, body in (
            (NETWORK_POLICIES, job, {"spec": {"podSelector": {}, "policyTypes": ["Ingress"]}}),
            (CONFIG_MAPS, f"{job}-svc", {"data": {"key": "value"}}),
            (SERVICES, job, {"spec": {"ports": [{"port": 80}]}}),
            (SERVICES, f"{torch}-master-0", {"spec": {"ports": [{"port": 80}]}}),
            (PODGROUPS, torch, {"spec": {"minMember": 3, "queue": "nowhere"}}),
            (PODS, f"{job}-a-0", template),
        ):
            yield resource, {"metadata": {"name": taken, "labels": {BYSTANDER: "true"}}, **body}
        ours = {"spec": {"containers": template["spec"]["containers"]}}
        tasks = [{"name": "a", "replicas": 1, "template": ours}]
        spec = {"schedulerName": "schedspec", "plugins": {"svc": []}, "tasks": tasks}
        yield JOBS, {"metadata": {"name": job}, "spec": spec}
        replicas = {"Master": {"replicas": 1, "template": ours}}
        yield PYTORCH_JOBS, {"metadata": {"name": torch}, "spec": {"pytorchReplicaSpecs": replicas}}


def false_owners(name: str, number: int) -> Created:
    """Yield failed pods, PodGroups and Commands that name the Job of another namespace by its uid."""
    owner = {"apiVersion": JOBS.api_version, "kind": "Job", "name": VICTIM, "uid": OF_VICTIM}
    for i in range(number):
        body = pod_body(f"{name}-{i}", "none", "10m")
        body["metadata"] |= {"ownerReferences": [{**owner, "controller": True}]}
        body["metadata"]["annotations"] |= {"volcano.sh/task-spec": "main", "volcano.sh/job-version": "0"}
        yield PODS, {**body, "status": {"phase": "Failed"}}
        meta = {"name": f"{name}-{i}", "ownerReferences": [{**owner, "controller": True}]}
        yield PODGROUPS, {"metadata": meta, "spec": {"minMember": 1, "queue": "default"}}
        yield COMMANDS, {"metadata": {"name": f"{name}-{i}"}, "action": "AbortJob", "target": owner}


def stubborn(name: str, number: int) -> Created:
    """Yield pods that fill the nodes and have a grace period of decades."""
    for i in range(number):
        group = {"metadata": {"name": f"{name}-{i}"}, "spec": {"minMember": 1, "queue": "lent"}}
        yield PODGROUPS, group
        body = pod_body(f"{name}-{i}", f"{name}-{i}", "31")
        body["metadata"]["annotations"]["schedspec.dev/stop-after"] = f"{DECADES}s"
        body["spec"]["terminationGracePeriodSeconds"] = DECADES
        yield PODS, body


ATTACKS: dict[str, Attack] = {
    "spread": Attack("a pod of 3,000 spread constraints × 1,000 node terms", 1, spread_times_terms),
    "terms": Attack("16 pods of 15,000 node terms", 16, terms),
    "expressions": Attack("100 pods of 800 expressions about nodes, of all kinds", 100, expressions),
    "preferred": Attack("60 pods of 100 preferred affinity terms", 60, preferred_terms),
    "preferred-first": Attack("the same, in a namespace that sorts first", 60, preferred_terms, is_first=True),
    "scoped-quotas": Attack("2,000 ResourceQuotas with scopes", 2_000, scoped_quotas),
    "long-names": Attack("100 pods that name a PodGroup by 240 KB", 100, long_names),
    "ports": Attack("24 pods of 4,000 host ports", 24, ports),
    "pod-terms": Attack("60 pods of 100 pod affinity terms", 60, pod_terms),
    "budgets": Attack("2,000 disruption budgets", 2_000, budgets),
    "memory": Attack("42 pods of another scheduler, 1 MB each", 42, foreign),
    "names": Attack("10 pods of 6,000 resource names", 10, resource_names),
    "queues": Attack("330 nested queues", 330, nested_queues),
    "shapes": Attack("2,000 gangs of distinct shapes", 2_000, shapes, 70.0),
    "junk": Attack("1,045 junk objects", 1_045, junk),
    "ghosts": Attack("200 PodGroups without pods that reserve 1,000 CPUs each", 200, ghosts),
    "giants": Attack("20 PodGroups and 20 Jobs of 150,000 pods", 20, giants),
    "anti-affinity": Attack("200 pods of 100 anti-affinity terms", 200, anti_affinity),
    "templates": Attack("42 Jobs of 0.8 MB of template", 42, templates),
    "names-taken": Attack("20 Jobs and PyTorchJobs that need the names of others' objects", 20, taken_names),
    "owners": Attack("200 failed pods, PodGroups and Commands that name another namespace's Job", 200, false_owners),
    "stubborn": Attack(
        "60 victims with a grace period of decades",
        60,
        stubborn,
        options=("--longest-grace", "1", "--after-grace", "force"),
        queue="entitled",
        cpu="2",
        more=2.0,
    ),
    "commands": Attack("500 Commands that cannot be deleted", 500, commands),
}
