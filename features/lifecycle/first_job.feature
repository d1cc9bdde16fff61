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
    # There are cpus for three pods of two, and no node has room for the third: two would fit, and none is bound.
    Given these nodes:
      | node | cpu | memory |
      | n2   | 1   | 8Gi    |
      | n3   | 1   | 8Gi    |
    When these jobs are submitted:
      | job   | queue    | replicas | cpu |
      | train | research | 3        | 2   |
    Then "train" stays pending
    And "train" waits because of "gang"
