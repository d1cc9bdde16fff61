@dialect
Feature: A waiting job is tried as soon as a change can help it
  What a scheduler stores about waiting jobs must not change its decisions.

  Scenario: A job whose idle cpu goes to another job reclaims for itself
    # Once the queue's limit is raised, both jobs see the one idle cpu before it is allocated.
    Given the policy "reclaim-before-allocate"
    And these nodes:
      | node | cpu | memory |
      | n1   | 4   | 16Gi   |
    And these queues:
      | queue | deserved | capability |
      | guest | cpu 1    |            |
      | owner | cpu 1    | cpu 1      |
    And these jobs run:
      | job    | queue | replicas | min available | cpu |
      | lender | guest | 2        | 1             | 1   |
      | base   | owner | 1        | 1             | 1   |
    And these jobs wait:
      | job    | queue | cpu |
      | first  | owner | 1   |
      | second | owner | 1   |
    When these queues change:
      | queue | deserved | capability |
      | owner | cpu 3    | cpu 3      |
    Then "first" runs
    And "second" runs
    And exactly 1 pod is evicted

  Scenario: A job with a launcher that requests nothing reclaims for its workers
    Given the policy "capacity"
    And these nodes:
      | node | cpu | memory |
      | n1   | 4   | 16Gi   |
    And these queues:
      | queue | deserved |
      | guest | cpu 1    |
      | owner | cpu 4    |
    And these jobs run:
      | job    | queue | replicas | min available | cpu |
      | lender | guest | 2        | 1             | 2   |
    When this job with tasks is submitted:
      | job | queue | task     | replicas | cpu |
      | mpi | owner | launcher | 1        | 0   |
      | mpi | owner | worker   | 1        | 2   |
    Then "mpi" runs
    And exactly 1 pod is evicted

  Scenario: A job that waited long enough keeps the capacity that it found
    Given the policy "sla"
    And these nodes:
      | node | cpu | memory |
      | n1   | 8   | 16Gi   |
    And these queues:
      | queue |
      | team  |
    And these jobs run:
      | job   | queue | cpu |
      | first | team  | 4   |
    And these jobs wait:
      | job  | queue | replicas | cpu |
      | held | team  | 2        | 4   |
    When these jobs are submitted:
      | job  | queue | cpu |
      | late | team  | 4   |
    Then "late" stays pending
    When "first" completes
    Then "held" runs
    And "late" stays pending
