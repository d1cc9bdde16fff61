# language: zh-CN
@dialect
功能: 失去一个 Pod 的训练作业会怎样
  gang 插件已启用，但对跨队列回收没有发言权：一组中的一个 Pod 可以被驱逐，其余由作业自己的策略处理。
  英文版：what_becomes_of_the_job.feature。

  背景:
    假如采用策略 "cross-queue-reclaim-with-gang"
    而且集群有 8 张 "NVIDIA-GeForce-RTX-4090" 卡
    而且有以下优先级类：
      | 优先级类 | 数值  |
      | high     | 80000 |
      | low      | 40000 |
    而且有以下队列：
      | 队列      | 优先级 | 卡配额 |
      | inference | 80000  | 8      |
      | training  | 20000  | 8      |

  规则: 由作业对 PodEvicted 的策略决定

    # 一组的两个任务中有一个被驱逐是有意的：这正是这些场景要说明的。
    @without-monitor-gang
    场景: AbortJob 结束整个作业
      假如以下作业在运行：
        | 作业  | 队列     | 优先级 | 副本数 | GPU 数 | Pod 被驱逐时 |
        | train | training | low    | 2      | 4      | AbortJob     |
      当提交以下服务：
        | 服务 | 队列      | 优先级 | GPU 数 |
        | chat | inference | high   | 4      |
      那么"chat" 运行起来
      而且作业 "train" 是 Aborted
      而且恰好 1 个 Pod 被驱逐，各一次

    @without-monitor-gang
    场景: RestartJob 使整个作业等待空闲的卡
      假如以下作业在运行：
        | 作业  | 队列     | 优先级 | 副本数 | GPU 数 | Pod 被驱逐时 |
        | train | training | low    | 2      | 4      | RestartJob   |
      当提交以下服务：
        | 服务 | 队列      | 优先级 | GPU 数 |
        | chat | inference | high   | 4      |
      那么"chat" 运行起来
      而且作业 "train" 依次是 Restarting, Pending
      而且"train" 的 PodGroup 是 Inqueue
      而且"train" 一直等待
      而且恰好 1 个 Pod 被驱逐，各一次
      当"chat" 被删除
      那么"train" 运行起来
