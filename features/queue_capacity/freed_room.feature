@extended
Feature: Freed capacity goes to the work that it was freed for
  No pod is evicted without effect, or twice for the same work, or without need for its capacity.

  Rule: Freed capacity is reserved for its pod until the pod runs

    Scenario: A job with spare pods keeps the capacity of its first pod while the victim terminates
      # The victim's queue is served first: capacity without a reservation would go to it, and it would be evicted again.
      Given the policy "capacity-without-enqueue"
      And these nodes:
        | node | cpu | memory |
        | n1   | 4   | 16Gi   |
      And these queues:
        | queue | priority | deserved |
        | guest | 10       | cpu 1    |
        | owner | 0        | cpu 4    |
      And these jobs run:
        | job    | queue | cpu | stop after |
        | lender | guest | 4   | 500ms      |
      And these jobs wait:
        | job  | queue | cpu |
        | next | guest | 4   |
      When these jobs are submitted:
        | job   | queue | replicas | min available | cpu |
        | claim | owner | 2        | 1             | 4   |
      Then exactly 1 pod of "claim" runs
      And exactly 1 pod is evicted
      And "next" stays pending

    Scenario: A more important job that may not reclaim does not take what was reclaimed for another one
      # "large" is owed cpu, but its queue has its share of cards as soon as it holds one more.
      Given the policy "capacity-without-enqueue"
      And these priority classes:
        | class | value |
        | high  | 1000  |
        | low   | 10    |
      And these nodes:
        | node | cpu | memory | gpus |
        | n1   | 9   | 16Gi   | 5    |
      And these queues:
        | queue | deserved     |
        | guest | cpu 4, gpu 3 |
        | owner | cpu 5, gpu 2 |
      And these jobs run:
        | job    | queue | replicas | min available | cpu | gpus | stop after |
        | lender | guest | 2        | 1             | 1   | 2    | 2s         |
        | own    | owner | 1        | 1             | 1   | 1    |            |
      And these jobs wait:
        | job   | queue | priority | cpu | gpus |
        | large | owner | high     | 1   | 2    |
      When these jobs are submitted:
        | job   | queue | priority | cpu | gpus |
        | small | owner | low      | 1   | 1    |
      Then "small" runs
      And exactly 1 pod is evicted
      And "large" stays pending

    Scenario: A queue that waits for capacity beyond its share leaves it to a queue within its share
      # "first" is served first and would hold 6 of its 5 cpus with "more". It used to lose "gang" for "claim".
      Given the policy "capacity-without-enqueue"
      And these nodes:
        | node | cpu | memory |
        | n1   | 7   | 16Gi   |
      And these queues:
        | queue  | priority | deserved |
        | first  | 1        | cpu 5    |
        | second | 0        | cpu 2    |
      And these jobs run:
        | job   | queue  | replicas | cpu | stop after |
        | own   | first  | 3        | 1   |            |
        | gang  | first  | 2        | 1   |            |
        | kept  | second | 1        | 1   |            |
        | leave | second | 1        | 1   | 2s         |
      And these jobs wait:
        | job   | queue  | cpu |
        | more  | first  | 1   |
        | claim | second | 1   |
      When "leave" is deleted
      Then "claim" runs
      And nothing is evicted
      And "more" stays pending
      And "more" waits because of "queue first may not reclaim: 5 cpu allocated and 1 requested, deserved 5"

  Rule: Members of an evicted gang whose capacity nobody needs keep running

    Scenario: The third pod of a job keeps running
      # The queue may keep the one pod that the job needs, but not two.
      Given the policy "capacity"
      And these nodes:
        | node | cpu | memory |
        | n1   | 4   | 16Gi   |
        | n2   | 2   | 16Gi   |
      And these queues:
        | queue | deserved |
        | guest | cpu 5    |
        | owner | cpu 4    |
      And these jobs run:
        | job    | queue | replicas | min available | cpu |
        | lender | guest | 3        | 1             | 2   |
      When these jobs are submitted:
        | job   | queue | cpu |
        | claim | owner | 4   |
      Then "claim" runs
      And exactly 2 pods are evicted, once each
      And exactly 1 pod of "lender" runs

    Scenario: A spare pod keeps running although a gang evicted later brings the queue to its share
      # The nodes join one by one, so that the placement is the same in every run: "first" has one pod on n1 and one on
      # n3, "later" one on n2 and one on n3. The third pod of "claim" fits only on n2. The pod of "first" on n3 is
      # beside "later", and both pods of "first" together are what their queue deserves.
      Given the policy "capacity"
      And these nodes:
        | node | cpu | memory |
        | n1   | 2   | 16Gi   |
      And these priority classes:
        | class  | value |
        | middle | 100   |
        | low    | 10    |
      And these queues:
        | queue | deserved |
        | guest | cpu 4    |
        | owner | cpu 6    |
      And these jobs are submitted:
        | job   | queue | priority | replicas | min available | cpu |
        | first | guest | low      | 2        | 1             | 2   |
      And exactly 1 pod of "first" runs
      When these nodes join:
        | node | cpu | memory |
        | n3   | 5   | 16Gi   |
      Then exactly 2 pods of "first" run
      When these nodes join:
        | node | cpu | memory |
        | n2   | 3   | 16Gi   |
      And these jobs are submitted:
        | job   | queue | priority | replicas | min available | cpu |
        | later | guest | middle   | 2        | 2             | 3   |
      Then "later" runs
      When these jobs are submitted:
        | job   | queue | replicas | cpu |
        | claim | owner | 3        | 2   |
      Then "claim" runs
      And exactly 3 pods are evicted, once each
      And exactly 1 pod of "first" runs

  Rule: A pod evicted for its queue's capability does not return above it

    Scenario: A queue at its capability preempts its own pods although cpus are idle
      Given the policy "capacity-with-preempt"
      And these nodes:
        | node | cpu | memory |
        | n1   | 8   | 16Gi   |
      And these priority classes:
        | class  | value |
        | urgent | 1000  |
        | low    | 10    |
      And these queues:
        | queue | deserved | capability |
        | team  | cpu 4    | cpu 4      |
      And these jobs run:
        | job   | queue | priority | replicas | min available | cpu |
        | train | team  | low      | 4        | 1             | 1   |
      When these jobs are submitted:
        | job   | queue | priority | cpu |
        | fixes | team  | urgent   | 2   |
      Then "fixes" runs
      And exactly 2 pods are evicted, once each
      And exactly 2 pods of "train" run

  Rule: A job does not evict all that its queue holds above its capability

    Scenario: A queue far above its capability keeps its pods when a small one waits
      Given the policy "capacity-with-preempt"
      And these nodes:
        | node | cpu | memory |
        | n1   | 8   | 16Gi   |
      And these priority classes:
        | class  | value |
        | urgent | 1000  |
        | low    | 10    |
      And these queues:
        | queue | capability |
        | team  | cpu 8      |
      And these jobs run:
        | job   | queue | priority | replicas | min available | cpu |
        | train | team  | low      | 8        | 1             | 1   |
      When these queues change:
        | queue | capability |
        | team  | cpu 2      |
      And these jobs are submitted:
        | job   | queue | priority | cpu |
        | fixes | team  | urgent   | 1   |
      Then "fixes" stays pending
      And nothing is evicted
      And "fixes" waits because of "raise spec.capability of queue team to 9 cpu, or end jobs of it"
