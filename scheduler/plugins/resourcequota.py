"""resourcequota: admit a PodGroup only within the ResourceQuotas of its namespace.

Semantics: Volcano's `plugins/resourcequota`. A PodGroup is admitted only if its `minResources` fits every ResourceQuota
of its namespace that covers its pods. The plugin does not limit the creation of pods.

Each pod counts once. Existing pods are in the quota's `used`; an admitted PodGroup counts in addition with the part of
its minimum that its pods do not request yet. (Volcano counts existing pods of the PodGroup twice, forgets earlier
admissions, ignores scopes, and does not map names such as `requests.cpu` to cpu.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ..framework.plugin import Plugin
from ..framework.session import Session
from ..model import resources
from ..model.job import Job, PodGroupPhase
from ..model.objects import Pod, ResourceQuota, ResourceQuotaStatus, ScopeRequirement
from ..model.resources import CPU, MEMORY, PODS, Resource
from ..model.task import COMPLETED, TaskStatus
from ..placement.empty_nodes import EmptyNodes
from ..policy.hooks import JobEnqueueable, JobEnqueued, Reasons, Vote
from ..reasons import NamespaceQuota, UnschedulableReason

_EXISTING = ~(COMPLETED | TaskStatus.UNKNOWN)
_REQUESTS = "requests."
_QUOTA_STEPS = 4


class ResourceQuotas(Plugin, JobEnqueueable, JobEnqueued, Reasons):
    """Admit PodGroups within the quotas of their namespaces."""

    name = "resourcequota"

    def open(self, session: Session) -> None:
        self._session = session
        self._by_namespace: dict[str, list[tuple[ResourceQuota, Resource, Resource]]] = {}
        for _, quota in sorted(session.cluster.quotas.items()):
            self._by_namespace.setdefault(quota.metadata.namespace, []).append((quota, *_amounts(quota.status)))
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
        self._session.work.spend(_QUOTA_STEPS * len(quotas) * (1 + len(admitted)))
        empty = self._session.shared(EmptyNodes)
        counted = admitted if empty.why_never(job) else [other for other in admitted if empty.why_never(other) is None]
        taken = resources.total_of(task.request for task in self._session.taken if task.namespace == job.namespace)
        for quota, hard, used in quotas:
            if not _covers(quota, job):
                continue
            reserved = resources.total_of(_missing(other) for other in counted if _covers(quota, other))
            for name in sorted(hard.keys() & wanted.keys()):
                held = reserved.get(name, 0)
                largest = sorted((-_missing(other).get(name, 0), other.key) for other in counted if held)[:2]
                if wanted[name] > 0 and used[name] - taken.get(name, 0) + held + wanted[name] > hard[name]:
                    yield NamespaceQuota(
                        quota.metadata.key,
                        name,
                        used[name],
                        wanted[name],
                        hard[name],
                        inqueue=held,
                        reserved_by=tuple(key for amount, key in largest if amount),
                    )


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


def _covers(quota: ResourceQuota, job: Job) -> bool:
    """Whether a quota's scopes cover the pods of a job, judged by its first pod, or by its PodGroup without pods."""
    spec = quota.spec
    if not spec.scopes and (spec.scope_selector is None or not spec.scope_selector.match_expressions):
        return True
    pod = next((job.tasks[key].pod for key in sorted(job.tasks)), None)
    selectors = [ScopeRequirement(scope, "Exists") for scope in spec.scopes or ()]
    if spec.scope_selector is not None:
        selectors += spec.scope_selector.match_expressions or ()
    return all(_matches(selector, job, pod) for selector in selectors)


def _matches(selector: ScopeRequirement, job: Job, pod: Pod | None) -> bool:
    has_deadline = pod is not None and pod.spec.active_deadline_seconds is not None
    scopes: dict[str, Callable[[], bool]] = {
        "Terminating": lambda: has_deadline,
        "NotTerminating": lambda: not has_deadline,
        "BestEffort": lambda: _is_best_effort(job, pod),
        "NotBestEffort": lambda: not _is_best_effort(job, pod),
        "PriorityClass": lambda: _names_class(selector, job, pod),
        "CrossNamespacePodAffinity": lambda: pod is not None and _selects_other_namespaces(pod),
    }
    return scopes.get(selector.scope_name, lambda: True)()


def _names_class(selector: ScopeRequirement, job: Job, pod: Pod | None) -> bool:
    of_group = job.group.spec.priority_class_name if job.group is not None else ""
    named = of_group if pod is None else pod.spec.priority_class_name
    match selector.operator:
        case "In":
            return named in (selector.values or ())
        case "NotIn":
            return named not in (selector.values or ())
        case "DoesNotExist":
            return not named
    return bool(named)


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
