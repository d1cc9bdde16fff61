@extended
Feature: A job that can never run keeps nothing from other jobs
  An admitted job reserves quota until its pods run. A job whose pods no node can hold, even an empty one, would reserve
  it for ever (https://github.com/volcano-sh/volcano/issues/2814, https://github.com/volcano-sh/volcano/issues/5006).

  Background:
    Given the policy "capacity"
    And these nodes:
      | node | cpu | memory | gpus |
      | n1   | 8   | 16Gi   | 1    |
      | n2   | 8   | 16Gi   | 1    |
    And these queues:
      | queue | deserved | capability |
      | team  | gpus 2   | gpus 2     |

  Scenario: A pod that no node can hold keeps no card from another job
    Given these jobs wait:
      | job   | queue | gpus |
      | large | team  | 2    |
    When these jobs are submitted:
      | job   | queue | gpus |
      | small | team  | 1    |
    Then "small" runs
    And "large" stays pending
    And "large" waits because of "2 nvidia.com/gpu requested, at most 1 on a node"

  Scenario: The job runs once a node can hold it
    Given these jobs wait:
      | job   | queue | gpus |
      | large | team  | 2    |
    When these nodes join:
      | node | cpu | memory | gpus |
      | n3   | 8   | 16Gi   | 2    |
    Then "large" runs
