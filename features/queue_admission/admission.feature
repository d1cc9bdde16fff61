Feature: A job that is not admitted uses nothing
  enqueue decides which PodGroups may have pods at all. Reclaim and preempt act for pods, so for a refused PodGroup they do nothing.

  Background:
    Given these nodes:
      | node | cpu | memory |
      | n1   | 4   | 16Gi   |

  Rule: A refused PodGroup has no pods and reclaims nothing

    @dialect
    Scenario: A job above its queue's capability is not admitted
      Given the policy "capacity"
      And these queues:
        | queue | deserved | capability |
        | owner | cpu 2    | cpu 2      |
        | guest | cpu 2    |            |
      And these jobs run:
        | job   | queue | replicas | min available | cpu |
        | batch | guest | 4        | 1             | 1   |
      When these jobs are submitted:
        | job  | queue | replicas | cpu |
        | wide | owner | 3        | 1   |
      Then the PodGroup of "wide" stays Pending
      And "wide" has no pods
      And "wide" waits because of "capability"
      And nothing is evicted

    @core
    Scenario: A later, smaller job of the same queue is admitted
      Given the policy "capacity"
      And these queues:
        | queue | deserved | capability |
        | owner | cpu 2    | cpu 2      |
      And these jobs wait:
        | job  | queue | replicas | cpu |
        | wide | owner | 3        | 1   |
      When these jobs are submitted:
        | job   | queue | replicas | cpu |
        | small | owner | 2        | 1   |
      Then "small" runs
      And "wide" has no pods

  Rule: Preempt works within a queue

    @core
    Scenario: A high-priority job preempts a low-priority job of its queue
      Given the policy "preempt"
      And these priority classes:
        | class | value |
        | high  | 1000  |
        | low   | 10    |
      And these queues:
        | queue |
        | team  |
      And these jobs run:
        | job    | queue | priority | cpu |
        | resnet | team  | low      | 4   |
      When these jobs are submitted:
        | job   | queue | priority | cpu |
        | llama | team  | high     | 4   |
      Then "llama" runs
      And exactly 1 pod is evicted
      And "resnet" is evicted

    @core
    Scenario: Equal priority preempts nothing
      Given the policy "preempt"
      And these priority classes:
        | class | value |
        | same  | 100   |
      And these queues:
        | queue |
        | team  |
      And these jobs run:
        | job   | queue | priority | cpu |
        | first | team  | same     | 4   |
      When these jobs are submitted:
        | job    | queue | priority | cpu |
        | second | team  | same     | 4   |
      Then "second" stays pending
      And nothing is evicted

    @core
    Scenario: Preempt evicts nothing in another queue
      # The queue deserves half of the cpus. The job waits only because the other job is in another queue.
      Given the policy "preempt"
      And these priority classes:
        | class | value |
        | high  | 1000  |
        | low   | 10    |
      And these queues:
        | queue |
        | team  |
        | other |
      And these jobs run:
        | job    | queue | priority | cpu |
        | resnet | other | low      | 4   |
      When these jobs are submitted:
        | job   | queue | priority | cpu |
        | llama | team  | high     | 2   |
      Then "llama" stays pending
      And nothing is evicted

  Rule: A policy uses amounts or weights for queues, not both

    @dialect
    Scenario: capacity together with proportion is refused
      When the policy "capacity-and-proportion" is given
      Then the policy is refused because of "capacity"
