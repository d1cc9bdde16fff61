"""resourcequota: admit a PodGroup only within the ResourceQuotas of its namespace.

Semantics: Volcano's `plugins/resourcequota`. A PodGroup is admitted only if its `minResources` fits every ResourceQuota
of its namespace that covers its pods. The plugin does not limit the creation of pods.

Each pod counts once. Existing pods are in the quota's `used`; an admitted PodGroup counts in addition with the part of
its minimum that its pods do not request yet. (Volcano counts existing pods of the PodGroup twice, forgets earlier
admissions, ignores scopes, and does not map names such as `requests.cpu` to cpu.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from ..framework.plugin import Plugin
from ..framework.session import Session
from ..model import resources
from ..model.job import Job, PodGroupPhase
from ..model.objects import Pod, ResourceQuota, ResourceQuotaStatus
from ..model.resources import CPU, MEMORY, PODS, Resource
from ..model.task import COMPLETED, TaskStatus
from ..placement.empty_nodes import EmptyNodes
from ..policy.hooks import JobEnqueueable, JobEnqueued, Reasons, Vote
from ..policy.model import PluginOption
from ..reasons import NamespaceQuota, UnschedulableReason

_EXISTING = ~(COMPLETED | TaskStatus.UNKNOWN)
_REQUESTS = "requests."
_QUOTA_STEPS = 4


class _PodTraits(NamedTuple):
    """The properties of a job's pods that scopes name."""

    has_deadline: bool
    is_best_effort: bool
    priority_class: str
    selects_other_namespaces: bool


class _Scope(NamedTuple):
    name: str
    operator: str
    values: frozenset[str]


class _ParsedQuota(NamedTuple):
    """A quota, its amounts by the names in requests, and its scopes."""

    quota: ResourceQuota
    hard: Resource
    used: Resource
    scopes: tuple[_Scope, ...]

    def covers(self, pods: _PodTraits) -> bool:
        return all(_MATCHES[scope.name](scope, pods) for scope in self.scopes if scope.name in _MATCHES)


class ResourceQuotas(Plugin, JobEnqueueable, JobEnqueued, Reasons):
    """Admit PodGroups within the quotas of their namespaces."""

    name = "resourcequota"

    def __init__(self, option: PluginOption) -> None:
        super().__init__(option)
        self._parsed: dict[str, _ParsedQuota] = {}
        """The quotas of the last cycle. A changed quota is another object."""

    def open(self, session: Session) -> None:
        self._session = session
        before, self._parsed = self._parsed, {}
        self._by_namespace: dict[str, list[_ParsedQuota]] = {}
        for key, quota in sorted(session.cluster.quotas.items()):
            parsed = before.get(key)
            if parsed is None or parsed.quota is not quota:
                parsed = _ParsedQuota(quota, *_amounts(quota.status), _scopes(quota))
            self._parsed[key] = parsed
            self._by_namespace.setdefault(quota.metadata.namespace, []).append(parsed)
        self._traits: dict[str, _PodTraits] = {}
        self._admitted: dict[str, list[Job]] = {}
        for job in session.selection.reserving if self._by_namespace else ():
            if job.phase == PodGroupPhase.INQUEUE and not session.selection.reservations.has_lapsed(job):
                self._admitted.setdefault(job.namespace, []).append(job)

    def job_enqueueable(self, job: Job) -> Vote:
        return Vote.ABSTAIN if next(self._exceeded(job), None) is None else Vote.REJECT

    def job_enqueued(self, job: Job) -> None:
        if job.namespace in self._by_namespace:
            self._admitted.setdefault(job.namespace, []).append(job)

    def reasons(self, job: Job, task: object | None) -> Iterator[UnschedulableReason]:
        if task is None:
            yield from self._exceeded(job)

    def _exceeded(self, job: Job) -> Iterator[NamespaceQuota]:
        """Yield the amounts that the job would exceed in each quota of the namespace."""
        quotas = self._by_namespace.get(job.namespace)
        if quotas is None or job.min_resources is None:
            return
        wanted, admitted = _missing(job), self._admitted.get(job.namespace, ())
        empty = self._session.shared(EmptyNodes)
        counted = admitted if empty.why_never(job) else [other for other in admitted if empty.why_never(other) is None]
        taken = resources.total_of(task.request for task in self._session.taken if task.namespace == job.namespace)
        pods, lacking = self._traits_of(job), [(other, _missing(other)) for other in counted]
        by_traits: dict[_PodTraits, Resource] = {}  # most jobs of a namespace have equal traits: quotas are many
        for other, amount in lacking:
            resources.add_to(by_traits.setdefault(self._traits_of(other), {}), amount)
        self._session.work.spend(_QUOTA_STEPS * (len(quotas) * (1 + len(by_traits)) + len(admitted)))
        for parsed in quotas:
            if not parsed.covers(pods):
                continue
            reserved = resources.total_of(amount for traits, amount in by_traits.items() if parsed.covers(traits))
            hard, used = parsed.hard, parsed.used
            for name in sorted(hard.keys() & wanted.keys()):
                held = reserved.get(name, 0)
                if wanted[name] > 0 and used[name] - taken.get(name, 0) + held + wanted[name] > hard[name]:
                    largest = sorted((-amount.get(name, 0), other.key) for other, amount in lacking if held)[:2]
                    yield NamespaceQuota(
                        parsed.quota.metadata.key,
                        name,
                        used[name],
                        wanted[name],
                        hard[name],
                        inqueue=held,
                        reserved_by=tuple(key for amount, key in largest if amount),
                    )

    def _traits_of(self, job: Job) -> _PodTraits:
        """Return the traits of a job's first pod, or of its PodGroup without pods."""
        if job.key not in self._traits:
            pod = job.tasks[min(job.tasks)].pod if job.tasks else None
            of_group = job.group.spec.priority_class_name if job.group is not None else ""
            self._traits[job.key] = _PodTraits(
                pod is not None and pod.spec.active_deadline_seconds is not None,
                _is_best_effort(job, pod),
                of_group if pod is None else pod.spec.priority_class_name,
                pod is not None and _selects_other_namespaces(pod),
            )
        return self._traits[job.key]


def _amounts(status: ResourceQuotaStatus) -> tuple[Resource, Resource]:
    """Return `hard` and `used` of a quota by the names in requests: `requests.cpu` is cpu, `count/pods` is pods.

    If two names stand for one resource, the name with the smaller rest counts. Each name has a usage of its own:
    `count/pods` includes finished pods, `pods` does not.
    """
    hard: Resource = {}
    used: Resource = {}
    for name, value in (status.hard or {}).items():
        plain = PODS if name == f"count/{PODS}" else name.removeprefix(_REQUESTS)
        if "/" in plain and plain.startswith("count/"):
            continue
        unit = resources.unit_of(plain)
        limit, usage = resources.amount_of(value, unit), resources.amount_of((status.used or {}).get(name, 0), unit)
        if plain not in hard or limit - usage < hard[plain] - used[plain]:
            hard[plain], used[plain] = limit, usage
    return hard, used


def _missing(job: Job) -> Resource:
    """Return the part of a job's minimum that its existing pods do not request: these are in `used` already."""
    requested = {PODS: job.min_available, **_plain(job.min_resources or {})}
    held = resources.total_of(task.request for task in job.having(_EXISTING))
    return resources.exceeded_part(requested, held)


def _plain(amounts: Mapping[str, int]) -> Resource:
    found: Resource = {}
    for name, amount in amounts.items():
        plain = name.removeprefix(_REQUESTS)
        in_millis = plain != name and plain == MEMORY  # `requests.memory` was parsed like a name without its own unit
        found[plain] = max(found.get(plain, 0), amount // 1000 if in_millis else amount)
    return found


# -------------------------------------------------------------------------------------------------------------- scopes


def _scopes(quota: ResourceQuota) -> tuple[_Scope, ...]:
    """Return the scopes of a quota, which must all match the pods."""
    selector = quota.spec.scope_selector
    found = [_Scope(name, "Exists", frozenset()) for name in quota.spec.scopes or ()]
    expressions = (selector.match_expressions or ()) if selector is not None else ()
    return (*found, *(_Scope(item.scope_name, item.operator, frozenset(item.values or ())) for item in expressions))


def _names_class(scope: _Scope, pods: _PodTraits) -> bool:
    match scope.operator:
        case "In":
            return pods.priority_class in scope.values
        case "NotIn":
            return pods.priority_class not in scope.values
        case "DoesNotExist":
            return not pods.priority_class
    return bool(pods.priority_class)


_MATCHES: Mapping[str, Callable[[_Scope, _PodTraits], bool]] = {
    "Terminating": lambda _, pods: pods.has_deadline,
    "NotTerminating": lambda _, pods: not pods.has_deadline,
    "BestEffort": lambda _, pods: pods.is_best_effort,
    "NotBestEffort": lambda _, pods: not pods.is_best_effort,
    "PriorityClass": _names_class,
    "CrossNamespacePodAffinity": lambda _, pods: pods.selects_other_namespaces,
}
"""Scope → whether it covers pods. A scope of another name covers all pods."""


def _is_best_effort(job: Job, pod: Pod | None) -> bool:
    if pod is None:
        return not any(_plain(job.min_resources or {}).get(name) for name in (CPU, MEMORY))
    containers = (*pod.spec.containers, *(pod.spec.init_containers or ()))
    found = [c.resources for c in containers if c.resources is not None]
    return not any((r.requests or {}).get(name) or (r.limits or {}).get(name) for r in found for name in (CPU, MEMORY))


def _selects_other_namespaces(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    parts = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity is not None else ()
    terms = [term for part in parts if part is not None for term in part.required or ()]
    terms += [item.pod_affinity_term for part in parts if part is not None for item in part.preferred or ()]
    return any(term.namespaces or term.namespace_selector is not None for term in terms)
