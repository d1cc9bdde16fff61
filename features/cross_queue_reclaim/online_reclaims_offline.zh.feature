# language: zh-CN
@extended
功能: 在线业务回收离线训练的卡
  推理与训练共用八张卡。每个队列都可以用满全部的卡；谁可以回收谁，取决于工作负载的类型（在线或离线）和优先级。
  英文版：online_reclaims_offline.feature。

  背景:
    假如采用策略 "cross-queue-reclaim"
    而且集群有 8 张 "NVIDIA-GeForce-RTX-4090" 卡
    而且有以下优先级类：
      | 优先级类 | 数值  |
      | high     | 80000 |
      | medium   | 60000 |
      | low      | 40000 |
    而且有以下队列：
      | 队列        | 优先级 | 卡配额 |
      | inference   | 80000  | 8      |
      | inference-b | 80000  | 8      |
      | training    | 20000  | 8      |
      | training-b  | 20000  | 8      |

  规则: 离线作业之间不抢占

    场景: 高优先级作业等待另一训练队列的低优先级作业
      假如以下作业在运行：
        | 作业 | 队列     | 优先级 | GPU 数 |
        | low  | training | low    | 8      |
      当提交以下作业：
        | 作业 | 队列       | 优先级 | GPU 数 |
        | high | training-b | high   | 2      |
      那么"high" 的 PodGroup 是 Inqueue
      而且"high" 一直等待
      而且没有 Pod 被驱逐

    场景: 高优先级作业等待本队列和另一训练队列的低优先级作业
      假如以下作业在运行：
        | 作业  | 队列       | 优先级 | GPU 数 |
        | low-1 | training   | low    | 4      |
        | low-2 | training-b | low    | 4      |
      当提交以下作业：
        | 作业 | 队列     | 优先级 | GPU 数 |
        | high | training | high   | 2      |
      那么"high" 的 PodGroup 是 Inqueue
      而且"high" 一直等待
      而且没有 Pod 被驱逐

  规则: 在线服务之间不抢占

    场景: 高优先级服务等待另一队列的低优先级服务
      假如以下服务在运行：
        | 服务 | 队列      | 优先级 | GPU 数 |
        | low  | inference | low    | 8      |
      当提交以下服务：
        | 服务 | 队列        | 优先级 | GPU 数 |
        | high | inference-b | high   | 2      |
      那么"high" 的 PodGroup 是 Inqueue
      而且"high" 一直等待
      而且没有 Pod 被驱逐

  规则: 高优先级服务回收中、低优先级训练的卡

    场景大纲: 高优先级服务回收优先级为 <被驱逐者> 的训练
      假如以下作业在运行：
        | 作业  | 队列     | 优先级     | GPU 数 |
        | train | training | <被驱逐者> | 8      |
      当提交以下服务：
        | 服务 | 队列      | 优先级 | GPU 数 |
        | chat | inference | high   | 8      |
      那么"chat" 运行起来
      而且恰好以下 Pod 被驱逐，各一次：
        | Pod          |
        | train-task-0 |
      而且"train" 一直等待

      例子:
        | 被驱逐者 |
        | medium   |
        | low      |

    场景: 服务的两个副本都得到卡
      假如以下作业在运行：
        | 作业    | 队列       | 优先级 | GPU 数 |
        | train-1 | training   | low    | 4      |
        | train-2 | training-b | medium | 4      |
      当提交以下服务：
        | 服务 | 队列      | 优先级 | 副本数 | GPU 数 |
        | chat | inference | high   | 2      | 4      |
      那么"chat" 运行起来
      而且恰好以下 Pod 被驱逐，各一次：
        | Pod            |
        | train-1-task-0 |
        | train-2-task-0 |

    场景: 训练也可以是普通的 Kubernetes 作业
      假如以下Kubernetes 作业在运行：
        | 作业  | 队列     | 优先级 | GPU 数 |
        | train | training | low    | 8      |
      当提交以下服务：
        | 服务 | 队列      | 优先级 | GPU 数 |
        | chat | inference | high   | 8      |
      那么"chat" 运行起来
      而且恰好 1 个 Pod 被驱逐，各一次
      而且"train" 被驱逐

  规则: 低优先级服务不回收中、高优先级训练的卡

    场景大纲: 低优先级服务等待优先级为 <占用者> 的训练
      假如以下作业在运行：
        | 作业  | 队列     | 优先级   | GPU 数 |
        | train | training | <占用者> | 8      |
      当提交以下服务：
        | 服务 | 队列      | 优先级 | GPU 数 |
        | chat | inference | low    | 2      |
      那么"chat" 的 PodGroup 是 Inqueue
      而且"chat" 一直等待
      而且没有 Pod 被驱逐

      例子:
        | 占用者 |
        | medium |
        | high   |

  规则: 空出来的卡先给在线服务，再按优先级分配

    场景: 服务最后提交，最先启动
      假如以下作业在运行：
        | 作业   | 队列     | 优先级 | GPU 数 |
        | holder | training | high   | 8      |
      而且以下作业在等待：
        | 作业   | 队列       | 优先级 | GPU 数 |
        | low    | training-b | low    | 8      |
        | medium | training-b | medium | 8      |
      而且以下服务在等待：
        | 服务 | 队列      | 优先级 | GPU 数 |
        | chat | inference | low    | 8      |
      当"holder" 运行完成
      那么"chat" 运行起来
      而且"medium" 一直等待
      当"chat" 被删除
      那么"medium" 运行起来
      而且"low" 一直等待
      当"medium" 运行完成
      那么"low" 运行起来
      而且按以下次序启动：
        | 工作负载 |
        | chat     |
        | medium   |
        | low      |

    场景: 服务最先提交，最先启动
      假如以下作业在运行：
        | 作业   | 队列     | 优先级 | GPU 数 |
        | holder | training | high   | 8      |
      而且以下服务在等待：
        | 服务 | 队列      | 优先级 | GPU 数 |
        | chat | inference | low    | 8      |
      而且以下作业在等待：
        | 作业   | 队列       | 优先级 | GPU 数 |
        | medium | training-b | medium | 8      |
        | low    | training-b | low    | 8      |
      当"holder" 运行完成
      那么"chat" 运行起来
      而且"medium" 一直等待
      当"chat" 被删除
      那么"medium" 运行起来
      当"medium" 运行完成
      那么"low" 运行起来
      而且按以下次序启动：
        | 工作负载 |
        | chat     |
        | medium   |
        | low      |
