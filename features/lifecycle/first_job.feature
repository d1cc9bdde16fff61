@core
Feature: A first job
  The shortest path from an empty cluster to a running job.

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

  Scenario: A job that does not fit as a whole waits as a whole
    # The cluster has six cpus for three pods of two cpus, but no node has two left for the third pod: no pod is bound.
    Given these nodes:
      | node | cpu | memory |
      | n2   | 1   | 8Gi    |
      | n3   | 1   | 8Gi    |
    When these jobs are submitted:
      | job   | queue    | replicas | cpu |
      | train | research | 3        | 2   |
    Then "train" stays pending
