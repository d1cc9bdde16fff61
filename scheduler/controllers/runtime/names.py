"""Annotation, label and environment names of Volcano's and Kubeflow's API, written once."""

from __future__ import annotations

GROUP_NAME = "scheduling.k8s.io/group-name"
QUEUE_NAME = "scheduling.volcano.sh/queue-name"
GROUP_MIN_MEMBER = "scheduling.volcano.sh/group-min-member"
TASK_SPEC = "volcano.sh/task-spec"
TASK_INDEX = "volcano.sh/task-index"
JOB_NAME = "volcano.sh/job-name"
JOB_NAMESPACE = "volcano.sh/job-namespace"
JOB_VERSION = "volcano.sh/job-version"
JOB_QUEUE = "volcano.sh/queue-name"
TEMPLATE = "volcano.sh/template-uid"
PREEMPTABLE = "volcano.sh/preemptable"
CLOSED_BY_PARENT = "volcano.sh/closed-by-parent"
VOLCANO_PREFIX = "volcano.sh/"
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

TRAINING_JOB = "training.kubeflow.org/job-name"
TRAINING_OPERATOR = "training.kubeflow.org/operator-name"
TRAINING_TYPE = "training.kubeflow.org/replica-type"
TRAINING_INDEX = "training.kubeflow.org/replica-index"
TRAINING_ROLE = "training.kubeflow.org/job-role"
