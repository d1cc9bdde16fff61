Feature: A first job
  From an empty cluster to a job that runs: the shortest way through everything.

  Background:
    Given these nodes:
      | node | cpu | memory |
      | n1   | 4   | 8Gi    |
    And these queues:
      | queue    | weight |
      | research | 1      |

  Scenario: A job whose pods all fit runs
    When these jobs are submitted:
      | job   | queue    | replicas | cpu |
      | train | research | 4        | 1   |
    Then "train" runs
    And the PodGroup of "train" is Running

  Scenario: A job that does not fit as a whole waits as a whole
    When these jobs are submitted:
      | job   | queue    | replicas | cpu |
      | train | research | 5        | 1   |
    Then "train" stays pending
