# language: zh-CN
@extended
功能: 服务先回收低优先级训练，再回收中优先级训练
  八张卡全部用于训练，每个作业两张。服务只回收它需要的卡，并且从最不重要的作业开始。
  英文版：order_of_victims.feature。

  背景:
    假如采用策略 "cross-queue-reclaim"
    而且集群有 8 张 "NVIDIA-GeForce-RTX-4090" 卡
    而且有以下优先级类：
      | 优先级类 | 数值  |
      | high     | 80000 |
      | medium   | 60000 |
      | low      | 40000 |
    而且有以下队列：
      | 队列      | 优先级 | 卡配额 |
      | inference | 80000  | 8      |
      | training  | 20000  | 8      |

  规则: 低优先级训练先被回收，且只回收需要的卡

    场景: 需要六张卡的服务回收两个低优先级作业和一个中优先级作业
      # 原文对运行两个低优先级作业和两个中优先级作业的集群写的是“三个低优先级作业”。
      假如以下作业在运行：
        | 作业     | 队列     | 优先级 | GPU 数 |
        | medium-1 | training | medium | 2      |
        | medium-2 | training | medium | 2      |
        | low-1    | training | low    | 2      |
        | low-2    | training | low    | 2      |
      当提交以下服务：
        | 服务 | 队列      | 优先级 | GPU 数 |
        | chat | inference | high   | 6      |
      那么"chat" 运行起来
      而且恰好 3 个 Pod 被驱逐，各一次
      而且"low-1" 被驱逐
      而且"low-2" 被驱逐
      而且恰好以下工作负载中的 1 个被驱逐：
        | 工作负载 |
        | medium-1 |
        | medium-2 |

    场景: 低优先级作业先于中优先级作业被驱逐
      假如以下作业在运行：
        | 作业     | 队列     | 优先级 | GPU 数 |
        | medium-1 | training | medium | 2      |
        | medium-2 | training | medium | 2      |
        | low-1    | training | low    | 2      |
        | low-2    | training | low    | 2      |
      当提交以下服务：
        | 服务 | 队列      | 优先级 | GPU 数 |
        | chat | inference | high   | 6      |
      那么"chat" 运行起来
      而且"low-1" 先于 "medium-1, medium-2" 被驱逐
      而且"low-2" 先于 "medium-1, medium-2" 被驱逐

    场景: 第二个服务回收最后一个中优先级作业
      假如以下作业在运行：
        | 作业     | 队列     | 优先级 | GPU 数 |
        | medium-1 | training | medium | 2      |
        | medium-2 | training | medium | 2      |
        | low-1    | training | low    | 2      |
        | low-2    | training | low    | 2      |
      而且以下服务在运行：
        | 服务 | 队列      | 优先级 | GPU 数 |
        | chat | inference | high   | 6      |
      当提交以下服务：
        | 服务   | 队列      | 优先级 | GPU 数 |
        | search | inference | high   | 2      |
      那么"search" 运行起来
      而且"chat" 保持运行
      而且恰好 4 个 Pod 被驱逐，各一次

    场景: 先回收两个小的低优先级作业，而不是一个大小正好的中优先级作业
      假如以下作业在运行：
        | 作业   | 队列     | 优先级 | GPU 数 |
        | low-1  | training | low    | 2      |
        | low-2  | training | low    | 2      |
        | medium | training | medium | 4      |
      当提交以下服务：
        | 服务 | 队列      | 优先级 | GPU 数 |
        | chat | inference | high   | 4      |
      那么"chat" 运行起来
      而且恰好以下 Pod 被驱逐，各一次：
        | Pod          |
        | low-1-task-0 |
        | low-2-task-0 |
      而且"medium" 保持运行
