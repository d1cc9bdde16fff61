@extended
Feature: A queue has what it deserves while jobs of other queues keep arriving

  Background:
    Given the policy "capacity"
    And these nodes:
      | node | cpu | memory | gpus |
      | n1   | 32  | 64Gi   | 4    |
    And these queues:
      | queue | deserved       |
      | small | cpu 16, gpus 1 |
      | large | cpu 16, gpus 3 |

  Scenario: A job keeps its gpus while jobs of another queue keep arriving
    Given these jobs run:
      | job   | queue | cpu | gpus |
      | train | large | 1   | 3    |
    When every 2 seconds these jobs arrive, 4 times:
      | job   | queue | cpu | gpus |
      | batch | small | 1   | 1    |
    Then within 20 seconds all of this happens
    And "batch-1" runs
    And "batch-4" stays pending for 2 seconds
    And "train" keeps running for 3 seconds
    And nothing is evicted

  Scenario: A job of a queue below its share starts within ten seconds
    Given these jobs run:
      | job   | queue | replicas | min available | cpu | gpus |
      | first | small | 4        | 1             | 1   | 1    |
    When these jobs are submitted:
      | job   | queue | cpu | gpus |
      | train | large | 1   | 3    |
    Then within 10 seconds all of this happens
    And "train" runs
    And 3 pods of "first" are evicted
    When 2 seconds pass
    Then "train" keeps running
