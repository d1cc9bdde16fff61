Feature: The shape of a pod decides nothing that its queue is owed
  The pods of a cluster request cpu, memory and cards in different proportions. A queue that is owed one resource gets
  it back from pods that hold more, or less, of the others.

  Rule: A queue far below its deserved share reclaims, whatever its pods request

    Background:
      Given the policy "capacity-without-enqueue"
      And these nodes:
        | node   | cpu | memory | gpus |
        | node-1 | 12  | 64Gi   | 3    |

    @core
    Scenario Outline: A pod of 4 cpus and <memory> gets the room of a pod of 4 cpus and 8Gi
      Given these queues:
        | queue  | deserved           |
        | guest  | cpu 6, memory 32Gi |
        | owner  | cpu 6, memory 32Gi |
      And these jobs run:
        | job  | queue | replicas | min available | cpu | memory |
        | lent | guest | 3        | 1             | 4   | 8Gi    |
      When these jobs are submitted:
        | job  | queue | cpu | memory   |
        | tune | owner | 4   | <memory> |
      Then "tune" runs
      And exactly 1 pod is evicted

      Examples:
        | memory |
        | 8Gi    |
        | 7Gi    |
        | 4Gi    |

    @extended
    Scenario: A pod without a card gets the cpus of a pod with a card
      Given these queues:
        | queue | deserved       |
        | guest | cpu 6, gpu 3   |
        | owner | cpu 6          |
      And these jobs run:
        | job  | queue | replicas | min available | cpu | gpus |
        | lent | guest | 3        | 1             | 4   | 1    |
      When these jobs are submitted:
        | job  | queue | cpu |
        | tune | owner | 4   |
      Then "tune" runs
      And exactly 1 pod is evicted

    @extended
    Scenario: A gang whose members have different shapes reclaims for their sum
      # Only memory is lent: the launcher takes it and fits beside the guest's pods; the worker lacks a card.
      Given these queues:
        | queue | deserved                    |
        | guest | cpu 6, gpu 3, memory 16Gi   |
        | owner | cpu 6, gpu 3, memory 32Gi   |
      And these jobs run:
        | job  | queue | replicas | min available | cpu | memory | gpus |
        | lent | guest | 3        | 1             | 2   | 8Gi    | 1    |
      When this job with tasks is submitted:
        | job  | queue | task     | replicas | cpu | memory | gpus |
        | tune | owner | launcher | 1        | 1   | 4Gi    | 0    |
        | tune | owner | worker   | 1        | 1   | 0      | 1    |
      Then "tune" runs
      And exactly 1 pod is evicted

  Rule: A pod beyond its queue's share takes only what others have too much of

    @extended
    Scenario: A pod that came back is not reclaimed again for memory of which the owner deserves none
      Given the policy "hierarchy"
      And these nodes:
        | node   | cpu | memory |
        | node-1 | 1   | 2Gi    |
        | node-2 | 3   | 3Gi    |
      And these queues:
        | queue | deserved          |
        | guest | cpu 1, memory 2Gi |
        | owner | cpu 2             |
      And these jobs run:
        | job  | queue | replicas | min available | cpu | memory |
        | lent | guest | 3        | 1             | 1   | 1Gi    |
      When these jobs are submitted:
        | job  | queue | replicas | min available | cpu | memory |
        | tune | owner | 2        | 1             | 1   | 2Gi    |
      Then exactly 1 pod of "tune" runs
      And "tune" waits because of "of no use to the preemptor"
      And exactly 1 pod is evicted

  Rule: An important pod preempts pods of another shape

    Background:
      Given the policy "capacity-with-preempt"
      And these priority classes:
        | class | value |
        | high  | 1000  |
        | low   | 10    |
      And these nodes:
        | node   | cpu | memory | gpus |
        | node-1 | 24  | 64Gi   | 12   |
      And these queues:
        | queue | deserved        |
        | team  | cpu 24, gpus 12 |
      And these jobs run:
        | job   | queue | priority | replicas | min available | cpu | gpus |
        | batch | team  | low      | 3        | 1             | 8   | 4    |

    @core
    Scenario Outline: A pod of 16 cpus and <gpus> cards gets the room of two pods of 8 cpus and 4 cards
      When these jobs are submitted:
        | job   | queue | priority | cpu | gpus   |
        | large | team  | high     | 16  | <gpus> |
      Then "large" runs
      And exactly 2 pods are evicted, once each

      Examples:
        | gpus |
        | 1    |
        | 3    |
        | 4    |

  Rule: Two queues do not evict each other's work for ever

    @dialect
    Scenario: Nobody is preempted for a job that another queue would reclaim next
      # "large" exceeds the share of its queue in memory: "claim" would reclaim it, and then "small" would run again.
      Given the policy "hierarchy-cce"
      And these nodes:
        | node   | cpu | memory |
        | node-1 | 2   | 16Gi   |
      And these priority classes:
        | class | value |
        | high  | 100   |
      And these queues:
        | queue | parent | deserved          |
        | guest | root   | cpu 2, memory 8Gi |
        | owner | root   | cpu 2, memory 8Gi |
      And these jobs run:
        | job   | queue | cpu | memory |
        | small | guest | 2   | 4Gi    |
      When these jobs are submitted:
        | job   | queue | cpu | memory | priority |
        | claim | owner | 2   | 4Gi    |          |
        | large | guest | 2   | 12Gi   | high     |
      Then "large" stays pending
      And "small" keeps running
      And nothing is evicted
