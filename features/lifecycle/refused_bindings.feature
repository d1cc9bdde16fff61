@extended
Feature: A binding that the API server refuses
  An admission webhook of the cluster refuses to bind the pods of one job, again and again (KAI#2074). The job waits until
  its bindings are accepted, and other work that has room runs.

  Background:
    Given the policy "capacity-without-enqueue"
    And these nodes:
      | node | cpu | memory | gpus |
      | n1   | 8   | 32Gi   | 4    |
    And these jobs run:
      | job  | replicas | gpus |
      | full | 4        | 1    |
    And these pods wait:
      | pod    | gpus | cpu |
      | doomed | 4    | 1   |

  Scenario: Work beside it that has room is bound
    When every binding of "doomed" is refused
    And "full" completes
    Then "doomed" stays pending
    When these jobs are submitted:
      | job  | replicas | cpu |
      | next | 2        | 1   |
    Then "next" runs
    And "doomed" stays pending

  Scenario: Work that cannot be bound leaves its room to other work
    When every binding of "doomed" is refused
    And these jobs are submitted:
      | job  | replicas | gpus |
      | next | 2        | 2    |
    And "full" completes
    Then "next" runs
    And "doomed" stays pending

  Scenario: Work runs as soon as its bindings are accepted again
    When every binding of "doomed" is refused
    And "full" completes
    Then "doomed" stays pending
    When the bindings of "doomed" are accepted again
    Then "doomed" runs
    And nothing is evicted
