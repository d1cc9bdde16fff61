@extended
Feature: An elastic PyTorchJob trains with the workers that have room
  It starts with its fewest workers, takes the others when there is room, and gives back those above its minimum
  (trainer#1571, trainer#1515).

  Background:
    Given the policy "capacity"
    And these nodes:
      | node | cpu | memory | gpus |
      | n1   | 16  | 64Gi   | 4    |
    And these queues:
      | queue | deserved |
      | team  | gpus 2   |
      | owner | gpus 2   |

  Scenario: An elastic job starts with its fewest workers, and the others follow
    Given these jobs run:
      | job   | queue | cpu | gpus |
      | other | owner | 1   | 2    |
    When these PyTorchJobs are submitted:
      | job   | queue | workers | min workers | cpu | gpus | master gpus |
      | train | team  | 4       | 2           | 1   | 1    | 0           |
    Then exactly 3 pods of "train" run
    And the PodGroup of "train" has minMember 3
    When "other" completes
    Then "train" runs
    And queue "team" holds 4 gpus

  Scenario: An elastic job without room for its fewest workers has no pod on a node
    Given these jobs run:
      | job   | queue | cpu | gpus |
      | other | owner | 1   | 3    |
    When these PyTorchJobs are submitted:
      | job   | queue | workers | min workers | cpu | gpus | master gpus |
      | train | team  | 4       | 2           | 1   | 1    | 0           |
    Then "train" stays pending

  Scenario: The owner of the gpus gets back the workers above the minimum only
    Given these PyTorchJobs run:
      | job   | queue | workers | min workers | cpu | gpus | master gpus |
      | train | team  | 4       | 2           | 1   | 1    | 0           |
    When these jobs are submitted:
      | job  | queue | replicas | cpu | gpus |
      | chat | owner | 2        | 1   | 1    |
    Then "chat" runs
    And exactly 2 pods are evicted, once each
    And exactly 3 pods of "train" run
    And queue "team" never holds less than 2 gpus

  Scenario: An elastic job grows and shrinks within its bounds
    Given these PyTorchJobs run:
      | job   | queue | workers | min workers | max workers | cpu | gpus | master gpus |
      | train | team  | 2       | 1           | 3           | 1   | 1    | 0           |
    When "train" grows to 4 pods
    Then "train" runs
    And queue "team" holds 3 gpus
    When "train" shrinks to 2 pods
    Then exactly 2 pods of "train" run
    And queue "team" holds 1 gpu

  @needs-pytorchjobs
  Scenario: A team's own elastic job keeps its minimum
    Given these jobs run:
      | job   | queue | cpu | gpus |
      | other | owner | 1   | 1    |
    When the jobs of "elastic.yaml" are submitted
    Then exactly 3 pods of "imagenet" run
    And the PodGroup of "imagenet" has minMember 2

  Scenario: The master of an elastic job does not go alone
    Given these nodes:
      | node | cpu | memory | gpus | labels |
      | n2   | 20  | 64Gi   | 1    | zone=b |
    And these PyTorchJobs run:
      | job   | queue | workers | min workers | cpu | gpus | master gpus | master cpu |
      | train | team  | 4       | 1           | 1   | 1    | 1           | 18         |
    When these jobs are submitted:
      | job  | queue | cpu | gpus | node selector |
      | chat | owner | 1   | 1    | zone=b        |
    Then "chat" runs on "n2"
    And all of the pods of "train" are evicted
