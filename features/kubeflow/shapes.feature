@extended
Feature: PyTorchJobs start with a part of their workers, and masters have a shape of their own
  Elastic training starts with some of its workers and takes the others when there is room (trainer#1571). A master often
  needs less than a worker.

  Background:
    Given the policy "capacity-without-enqueue"
    And these nodes:
      | node | cpu | memory | gpus |
      | n1   | 8   | 32Gi   | 4    |
    And these queues:
      | queue | deserved |
      | team  | gpus 4   |

  Scenario: A PyTorchJob starts with its minimum, and its other workers follow
    Given these jobs run:
      | job   | queue | cpu | gpus |
      | other | team  | 1   | 2    |
    When these PyTorchJobs are submitted:
      | job   | queue | workers | min available | cpu | gpus | master gpus |
      | train | team  | 3       | 2             | 1   | 1    | 0           |
    Then exactly 3 pods of "train" run
    And the PodGroup of "train" has minMember 2
    And 1 pod of "train" stays pending
    When "other" completes
    Then "train" runs
    And queue "team" holds 3 gpus

  Scenario: A PyTorchJob without room for its minimum has no pod on a node
    Given these jobs run:
      | job   | queue | cpu | gpus |
      | other | team  | 1   | 3    |
    When these PyTorchJobs are submitted:
      | job   | queue | workers | min available | cpu | gpus |
      | train | team  | 3       | 2             | 1   | 1    |
    Then "train" stays pending
    And nothing is evicted

  Scenario: A master of another shape than its workers
    When these PyTorchJobs are submitted:
      | job   | queue | workers | cpu | gpus | master cpu | master memory | master gpus |
      | train | team  | 2       | 1   | 2    | 4          | 8Gi           | 0           |
    Then "train" runs
    And queue "team" holds 6 cpu
    And queue "team" holds 4 gpus
