@extended
Feature: Queues divide the cluster by weight
  People say how much a queue has as a part of the cluster: a third of the gpus, all but one.

  Background:
    Given the policy "proportion-without-enqueue"
    And these nodes:
      | node | cpu | memory | gpus |
      | n1   | 32  | 64Gi   | 6    |
      | n2   | 32  | 64Gi   | 3    |
    And these queues:
      | queue | weight |
      | small | 1      |
      | large | 2      |

  Scenario: An idle cluster is lent as a whole
    When these jobs are submitted:
      | job   | queue | replicas | min available | cpu | gpus |
      | batch | small | 9        | 1             | 1   | 1    |
    Then queue "small" holds all of the gpus
    And all of the pods of "batch" run

  Scenario: A queue of double weight gets back two thirds
    Given these jobs run:
      | job   | queue | replicas | min available | cpu | gpus |
      | batch | small | 9        | 1             | 1   | 1    |
    When these jobs are submitted:
      | job   | queue | replicas | min available | cpu | gpus |
      | train | large | 9        | 1             | 1   | 1    |
    Then queue "large" holds two thirds of the gpus
    And queue "small" holds a third of the gpus
    And a third of the pods of "batch" run
    And 6 pods of "batch" are evicted

  Scenario: A job of one gpu costs the other queue at most one pod
    Given these jobs run:
      | job   | queue | replicas | min available | cpu | gpus |
      | batch | small | 9        | 1             | 1   | 1    |
    When these jobs are submitted:
      | job  | queue | cpu | gpus |
      | test | large | 1   | 1    |
    Then "test" runs
    And all but one of the pods of "batch" run
    And between 7 and 8 pods of "batch" run
    And at most 1 pod of "batch" is evicted
    And queue "small" holds between 7 and 8 gpus
