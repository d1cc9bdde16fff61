@dialect
Feature: A team's own queues of Kueue are used unchanged
  Flavors, quotas, cohorts and settings of preemption are those of the file that the team applies to its cluster.

  Background:
    Given these nodes:
      | node | cpu | memory | labels             |
      | n1   | 4   | 16Gi   | capacity=on-demand |
      | n2   | 2   | 16Gi   | capacity=spot      |
    And the Kueue queues of "clusterqueues.yaml"

  Scenario: A queue borrows within its cohort, and its second flavor has the rest
    When these jobs are submitted:
      | job  | queue    | cpu |
      | one  | research | 2   |
      | two  | research | 2   |
      | more | research | 2   |
    Then "one" runs
    And "two" runs
    And "more" runs

  Scenario: The owner gets back what the other queue has borrowed
    Given these jobs run:
      | job  | queue    | cpu |
      | one  | research | 2   |
      | two  | research | 2   |
      | more | research | 2   |
    When these jobs are submitted:
      | job  | queue   | cpu |
      | chat | serving | 2   |
    Then "chat" runs on a node with "capacity=on-demand"
    And exactly 1 pod is evicted
    And exactly 1 of these is evicted:
      | workload |
      | one      |
      | two      |
      | more     |

  Scenario: A TrainJob is admitted as a whole
    Given these jobs run:
      | job | queue   | cpu |
      | one | serving | 2   |
    And these jobs are submitted:
      | job  | queue    | cpu |
      | more | research | 2   |
    When the jobs of "kueue_train_job.yaml" are submitted
    Then "more" runs
    And "tune" stays pending
    When "more" completes
    And "one" completes
    Then "tune" runs
