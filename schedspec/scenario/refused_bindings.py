"""Have the API server refuse the bindings of work, as the admission webhook of an operator does.

A ValidatingAdmissionPolicy refuses them in the scenario's namespaces. An API server puts a policy into force seconds
after it was applied, so each call returns when a binding of a pod that does not exist is answered accordingly.
"""

from __future__ import annotations

from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from ..api import spaces, timeouts
from ..api.client import Api, Object
from ..api.errors import HarnessError, RejectedError
from ..clusters.protocol import SCENARIO

REFUSES = "schedspec.dev/refuses-bindings-of"
"""Annotation of a policy: the work, as namespace/name. The API server of the simulated cluster reads it, not CEL."""
_API = "admissionregistration.k8s.io/v1"
_PATHS = {
    "ValidatingAdmissionPolicy": f"/apis/{_API}/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": f"/apis/{_API}/validatingadmissionpolicybindings",
}
PATHS = tuple(_PATHS.values())
"""Where the API serves policies and their bindings."""
_TEXT = "the scenario refuses this binding"


class RefusedBindings:
    """The work of one scenario whose bindings are refused."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api, self._namespace = api, namespace
        self._refused: dict[str, str] = {}
        """Work → the name of its policy."""

    def refuse(self, work: str) -> None:
        """Refuse every binding of the work's pods from now on. Raises RejectedError."""
        namespace, name = spaces.real(self._namespace, work)
        self._refused[work] = policy = f"{namespace}-{name}"
        for obj in _policy(policy, namespace, name, self._namespace):
            self._api.call("POST", _PATHS[obj["kind"]], body=obj)
        self._wait(work, refused=True)

    def accept(self, work: str) -> bool:
        """Accept them again. Return False if they are not refused."""
        if work not in self._refused:
            return False
        self._delete(self._refused.pop(work))
        self._wait(work, refused=False)
        return True

    def close(self) -> None:
        """Delete all policies."""
        for policy in self._refused.values():
            self._delete(policy)

    def _delete(self, policy: str) -> None:
        for path in reversed(PATHS):
            self._api.delete(f"{path}/{policy}")

    def _wait(self, work: str, *, refused: bool) -> None:
        poll = Retrying(
            retry=retry_if_result(lambda found: found is not refused),
            stop=stop_after_delay(timeouts.NAMESPACES),
            wait=wait_fixed(0.1),
            retry_error_callback=lambda _: None,
        )
        if poll(self._is_refused, work) is None:
            raise HarnessError(f"the API server {'accepts' if refused else 'refuses'} bindings of {work} still")

    def _is_refused(self, work: str) -> bool:
        """Whether the binding of a pod of the work, which does not exist, is refused by the policy."""
        namespace, name = spaces.real(self._namespace, work)
        pod = f"{name}-of-schedspec"
        target = {"apiVersion": "v1", "kind": "Node", "name": "none"}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target}
        try:
            self._api.call("POST", f"/api/v1/namespaces/{namespace}/pods/{pod}/binding", body=body)
        except RejectedError as problem:
            return _TEXT in problem.message
        raise HarnessError(f"a pod {pod} exists, although no scenario creates one")


def _policy(policy: str, namespace: str, name: str, scenario: str) -> list[Object]:
    """Return the policy that refuses bindings of pods whose name begins with `name`, and its binding."""
    meta = {"name": policy, "labels": {SCENARIO: scenario}}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/binding"]}
    here = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    expression = f"request.name != '{name}' && !request.name.startsWith('{name}-')"
    return [
        {
            "apiVersion": _API,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {**meta, "annotations": {REFUSES: f"{namespace}/{name}"}},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"namespaceSelector": here, "resourceRules": [rule]},
                "validations": [{"expression": expression, "message": _TEXT}],
            },
        },
        {
            "apiVersion": _API,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": meta,
            "spec": {"policyName": policy, "validationActions": ["Deny"]},
        },
    ]
