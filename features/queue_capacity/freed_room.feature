Feature: Freed room goes to the work that others left for
  Nobody is evicted in vain, nobody is evicted twice for the same work, and nobody goes whose room is not needed.

  Rule: Room stays with the pod that it was freed for until that pod runs

    Scenario: A job with more pods than it needs keeps the room of the first while the victim stops
      # The victim's queue is served first: whatever is not kept goes to it, and would have to be evicted again.
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

  Rule: Of a gang that has to go those stay whose room nobody needs

    Scenario: The third pod of a job stays where it is
      # Its queue may be left with the one pod that the job needs, but not with two.
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

  Rule: Who has left for a queue's ceiling does not come back above it

    Scenario: A queue at its capability makes room among its own, though cpus are idle
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
