"""The sentences in Chinese: the same functions with other words, and tables with Chinese columns.

A feature that begins with `# language: zh-CN` uses them; its keywords are Gherkin's own (功能, 规则, 场景, 假如, 当,
那么). Names of queues, jobs and classes are Kubernetes names; phases and policies keep their English names.
"""

from __future__ import annotations

from schedspec.gherkin.step_decorators import given, in_other_words, then, when, word_for
from schedspec.steps import acts, cards, evictions, jobs, nodes, phases, pods, queues  # noqa: F401 - they define the sentences

COLUMNS = {
    "作业": "job",
    "服务": "service",
    "队列": "queue",
    "节点": "node",
    "任务": "task",
    "工作负载": "workload",
    "Pod": "pod",
    "优先级": "priority",
    "优先级类": "class",
    "数值": "value",
    "GPU 数": "gpus",
    "卡数": "cards",
    "卡型号": "card",
    "卡配额": "card quota",
    "内存": "memory",
    "副本数": "replicas",
    "最少可用": "min available",
    "节点选择": "node selector",
    "容忍": "tolerates",
    "标签": "labels",
    "污点": "taints",
    "可被抢占": "preemptable",
    "最大重试": "max retry",
    "Pod 被驱逐时": "on PodEvicted",
    "任务完成时": "on TaskCompleted",
    "上级队列": "parent",
    "权重": "weight",
    "上限": "capability",
    "应得": "deserved",
    "保障": "guarantee",
    "可回收": "reclaimable",
    "已分配": "allocated",
}
"""Chinese column → English column; `cpu` and `pods` keep their names."""

WORK = word_for(
    {"作业": "jobs", "服务": "services", "Kubernetes 作业": "Kubernetes jobs", "PyTorch 作业": "PyTorchJobs"}
)

_GIVEN = {
    '采用策略 "{name}"': 'the policy "{name}"',
    '集群有 {number:d} 张 "{model}" 卡': 'a cluster with {number:d} cards "{model}"',
    "有以下节点：": "these nodes:",
    "有以下优先级类：": "these priority classes:",
    "有以下队列：": "these queues:",
    "已提交以下{work:Work}：": "these {work:Work} are submitted:",
    "以下{work:Work}在运行：": "these {work:Work} run:",
    "以下{work:Work}在等待：": "these {work:Work} wait:",
}
_WHEN = {
    "提交以下{work:Work}：": "these {work:Work} are submitted:",
    '"{name}" 运行完成': '"{name}" completes',
    '"{name}" 被删除': '"{name}" is deleted',
    "修改以下队列：": "these queues change:",
    "加入以下节点：": "these nodes join:",
}
_THEN = {
    '"{name}" 运行起来': '"{name}" runs',
    '"{name}" 保持运行': '"{name}" keeps running',
    '"{name}" 一直等待': '"{name}" stays pending',
    '"{name}" 恰好有 {number:d} 个 Pod 运行': 'exactly {number:d} pods of "{name}" run',
    '"{name}" 因 "{text}" 而等待': '"{name}" waits because of "{text}"',
    "没有 Pod 被驱逐": "nothing is evicted",
    "恰好以下 Pod 被驱逐，各一次：": "exactly these pods are evicted, once each:",
    "恰好 {number:d} 个 Pod 被驱逐，各一次": "exactly {number:d} pods are evicted, once each",
    "恰好以下工作负载中的 {number:d} 个被驱逐：": "exactly {number:d} of these is evicted:",
    '"{name}" 被驱逐': '"{name}" is evicted',
    '"{name}" 先于 "{others}" 被驱逐': '"{name}" is evicted before any of "{others}"',
    "按以下次序启动：": "these start in this order:",
    '"{name}" 的 PodGroup 是 {phase:Phase}': 'the PodGroup of "{name}" is {phase:Phase}',
    '"{name}" 的 PodGroup 一直是 {phase:Phase}': 'the PodGroup of "{name}" stays {phase:Phase}',
    '作业 "{name}" 是 {phase:JobPhase}': 'job "{name}" is {phase:JobPhase}',
    '作业 "{name}" 依次是 {names:JobPhases}': 'job "{name}" goes through {names:JobPhases}',
}

# pytest-bdd registers a step in the scope of its decorator, so this loop must be at module level.
for _step, _sentences in ((given, _GIVEN), (when, _WHEN), (then, _THEN)):
    for _chinese, _english in _sentences.items():
        _step(_chinese, (), Work=WORK, **phases.PHASES)(in_other_words(_english, COLUMNS))
