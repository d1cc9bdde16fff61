@extended
Feature: Four steps with weights instead of amounts
  With the proportion plugin the deserved share of a queue is not configured: it follows from the weights, the cluster's
  resources and the requests of each queue.

  Background:
    Given the policy "proportion"
    And these nodes:
      | node | cpu | memory |
      | n1   | 4   | 8Gi    |

  Scenario: A queue of three times the weight gets three of four cpus
    Given these queues:
      | queue   | weight |
      | default | 1      |
    And these jobs run:
      | job  | queue   | cpu |
      | job1 | default | 1   |
      | job2 | default | 3   |
    And these queues:
      | queue | weight | reclaimable |
      | test  | 3      | yes         |
    When these jobs are submitted:
      | job  | queue | cpu |
      | job3 | test  | 3   |
    Then "job3" runs
    And exactly 1 pod is evicted
    And "job2" is evicted
    And "job1" keeps running
    And "job2" stays pending
