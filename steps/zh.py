"""The sentences in Chinese: the same functions with other words, and tables with Chinese columns.

A feature that begins with `# language: zh-CN` uses them; its keywords are Gherkin's own (功能, 规则, 场景, 假如, 当,
那么). Names of queues, jobs and classes are Kubernetes names; phases and policies keep their English names.
"""

from __future__ import annotations

from schedspec.gherkin import quantities
from schedspec.gherkin.step_decorators import given, in_other_words, then, when, word_for
from schedspec.steps import acts, cards, evictions, holdings, jobs, nodes, phases, pods, queues, shared_cards, topology  # noqa: F401 - they define the sentences

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
    "机架": "rack",
    "汇聚": "spine",
    "节点组": "group",
    "可用节点组": "node groups",
    "优先节点组": "preferred node groups",
    "避开节点组": "avoided node groups",
    "共享卡数": "shared gpus",
    "单卡显存": "card memory",
    "显存": "gpu memory",
    "整卡数": "whole gpus",
    "vGPU 数": "vgpus",
    "vGPU 显存": "vgpu memory",
    "vGPU 算力": "vgpu cores",
    "须同": "required",
    "尽量同": "preferred",
    "分区大小": "partition",
    "分区须同": "partition required",
    "驱逐方式": "disruption",
    "成组作业": "gang",
    "工作副本数": "workers",
    "抢占策略": "preemption policy",
    "默认": "default",
    "启动耗时": "start after",
    "停止耗时": "stop after",
}
"""Chinese column → English column; `cpu` and `pods` keep their names."""

WORK = word_for(
    {
        "作业": "jobs",
        "服务": "services",
        "成组作业": "gangs",
        "Pod": "pods",
        "Kubernetes 作业": "Kubernetes jobs",
        "PyTorch 作业": "PyTorchJobs",
    }
)
_LEVELS = {"机架": "rack", "汇聚": "spine"}
_TYPES = {
    **phases.PHASES,
    "Work": WORK,
    "JobDone": word_for({"中止": "aborted", "恢复": "resumed"}),
    "QueueDone": word_for({"关闭": "closed", "开启": "opened"}),
    "State": phases.STATE,
    "Amount": quantities.AMOUNT_ZH,
    "Range": quantities.RANGE_ZH,
    "Many": quantities.MANY_ZH,
    "Level": word_for(_LEVELS),
    "Nodes": word_for({"节点": "node"}),
    "Places": word_for({**_LEVELS, "节点": "node"}),
}
"""The words of the placeholders. Phases and amounts keep their English words."""

_GIVEN = {
    '采用策略 "{name}"': 'the policy "{name}"',
    '集群有 {number:d} 张 "{model}" 卡': 'a cluster with {number:d} cards "{model}"',
    "有以下节点：": "these nodes:",
    "有以下优先级类：": "these priority classes:",
    "有以下队列：": "these queues:",
    '采用 "{file}" 中的策略': 'the policy of "{file}"',
    '有 "{file}" 中的队列': 'the queues of "{file}"',
    '有 "{file}" 中的节点': 'the nodes of "{file}"',
    "有集群自己的节点": "the real nodes of the cluster",
    "高优先级的工作可抢占低优先级的工作": "work of higher priority takes the room of work of lower priority",
    "过了一秒": "a second has passed",
    "以下{work:Work}已绑定：": "these {work:Work} are bound:",
    "以下多任务作业在运行：": "this job with tasks runs:",
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
    '优先级类 "{name}" 被删除': 'priority class "{name}" is deleted',
    "提交以下多任务作业：": "this job with tasks is submitted:",
    "提交以下一个队列：": "this queue is submitted:",
    '给出策略 "{name}"': 'the policy "{name}" is given',
    '"{names}" 中在运行的运行完成': 'whichever of "{names}" runs completes',
    '"{name}" 扩到 {number:d} 个 Pod': '"{name}" grows to {number:d} pods',
    'Pod "{name}" 运行完成': 'pod "{name}" completes',
    'Pod "{name}" 以退出码 {code:d} 失败': 'pod "{name}" fails with exit code {code:d}',
    '作业 "{name}" 被{done:JobDone}': 'job "{name}" is {done:Done}',
    '队列 "{name}" 被{done:QueueDone}': 'queue "{name}" is {done:Done}',
    '节点 "{name}" 连同其 Pod 离开': 'node "{name}" leaves with its pods',
}
_THEN = {
    '"{name}" 运行起来': '"{name}" runs',
    '"{name}" 保持运行': '"{name}" keeps running',
    '"{name}" 一直等待': '"{name}" stays pending',
    '"{name}" {many:Many} Pod 运行': '{many:Many} pods of "{name}" run',
    '"{name}" {many:Many} Pod 一直等待': '{many:Many} pods of "{name}" stay pending',
    '"{name}" {many:Many} Pod 被驱逐': '{many:Many} pods of "{name}" are evicted',
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
    '"{name}" 的 PodGroup 依次是 {names:Phases}': 'the PodGroup of "{name}" goes through {names:Phases}',
    '"{name}" 的 PodGroup 的 minMember 是 {members:d}': 'the PodGroup of "{name}" has minMember {members:d}',
    '队列 "{name}" 是 {state:State}': 'queue "{name}" is {state:State}',
    "以下队列的状态是：": "these queues have:",
    '队列 "{name}" 持有不再少于 {amount:Amount}': 'queue "{name}" never holds less than {amount:Amount}',
    '队列 "{name}" 至多持有 {amount:Amount}': 'queue "{name}" holds at most {amount:Amount}',
    '队列 "{name}" 持有 {amount:Range}': 'queue "{name}" holds {amount:Range}',
    'Pod "{name}" 一直等待': 'pod "{name}" stays pending',
    "恰好以下工作负载中的 {number:d} 个运行：": "exactly {number:d} of these runs:",
    '"{names}" 都运行过': 'each of "{names}" has run',
    '"{name}" 运行或被拒绝': '"{name}" runs or is refused',
    '"{name}" 整体运行或全不运行': '"{name}" runs as a whole or not at all',
    '"{name}" 没有 Pod': '"{name}" has no pods',
    '因 "{text}" 而被拒绝': 'it is refused because of "{text}"',
    '"{name}" 的 Pod 共用 {number:d} 张卡': 'the pods of "{name}" share {number:d} cards',
    '"{name}" 与 "{other}" 共用一张卡': '"{name}" and "{other}" share a card',
    '"{name}" 与 "{other}" 不共用卡': '"{name}" and "{other}" share no card',
    '"{name}" 的 Pod 都在一个{level:Level}': 'every pod of "{name}" is in one {level:Level}',
    '"{name}" 的 Pod 都在{level:Level} "{domain}"': 'every pod of "{name}" is in {level:Level} "{domain}"',
    '"{name}" 的 Pod 在 {number:d} 个{level:Places}': 'the pods of "{name}" are on {number:d} {level:Nodes}',
    '"{name}" 的 Pod 均匀分布在 {number:d} 个{level:Places}': (
        'the pods of "{name}" are spread over {number:d} {level:Places}'
    ),
    '"{name}" 的 Pod 集中在 {number:d} 个{level:Nodes}': 'the pods of "{name}" are packed on {number:d} {level:Nodes}',
    '"{name}" 在 "{nodes}" 上运行': '"{name}" runs on "{nodes}"',
    '"{name}" 在节点组 "{group}" 上运行': '"{name}" runs on nodes of group "{group}"',
    '"{name}" 在标签为 "{labels}" 的节点上运行': '"{name}" runs on nodes with "{labels}"',
    '"{nodes}" 上没有 Pod': 'no pod is on "{nodes}"',
}

# pytest-bdd registers a step in the scope of its decorator, so this loop must be at module level.
for _step, _sentences in ((given, _GIVEN), (when, _WHEN), (then, _THEN)):
    for _chinese, _english in _sentences.items():
        _step(_chinese, (), **_TYPES)(in_other_words(_english, COLUMNS))
