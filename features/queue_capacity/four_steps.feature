@extended
Feature: Four steps from an empty cluster to a reclaimed share
  A queue may use capacity that no other queue claims, and loses it when its owner needs it.

  Background:
    Given the policy "capacity"
    And these nodes:
      | node | cpu | memory |
      | n1   | 4   | 8Gi    |

  Scenario: The queue that lent its cpus gets them back
    Given these queues:
      | queue   | deserved |
      | default | cpu 1    |
    And these jobs run:
      | job  | queue   | cpu |
      | job1 | default | 1   |
      | job2 | default | 3   |
    And these queues:
      | queue | deserved | reclaimable |
      | test  | cpu 3    | yes         |
    When these jobs are submitted:
      | job  | queue | cpu |
      | job3 | test  | 3   |
    Then "job3" runs
    And exactly 1 pod is evicted
    And "job2" is evicted
    And "job1" keeps running
    And "job2" stays pending
