Feature: The parts of a job have racks of their own, close to each other
  Pods that share a model's layers exchange the most data: they form a part that requires a rack. Parts exchange less
  data, so the whole job requires only a spine. A Volcano Job has `partitionPolicy` for this.

  Background:
    Given a policy by which higher priority preempts lower priority
    And these nodes:
      | node | cpu | memory | rack   | spine   |
      | n1   | 4   | 16Gi   | rack-a | spine-1 |
      | n2   | 4   | 16Gi   | rack-b | spine-1 |
      | n3   | 4   | 16Gi   | rack-c | spine-2 |
      | n4   | 4   | 16Gi   | rack-d | spine-2 |

  @extended
  Scenario: Each part is in one rack, and all of them are in one spine
    When these jobs are submitted:
      | job   | replicas | cpu | required | partition | partition required |
      | train | 4        | 2   | spine    | 2         | rack               |
    Then "train" runs
    And every pod of "train" is in one spine
    And the pods of "train" are in 2 racks

  @extended
  Scenario: A job waits where its parts would find racks only in two spines
    When these jobs are submitted:
      | job   | replicas | cpu | required | partition | partition required |
      | train | 6        | 2   | spine    | 2         | rack               |
    Then "train" stays pending
    And nothing is evicted

  @extended
  Scenario: Eviction frees a rack for each part, and both racks are in one spine
    Given these priority classes:
      | class  | value |
      | low    | 10    |
      | medium | 100   |
      | high   | 1000  |
    And these jobs run:
      | job   | replicas | cpu | priority | required |
      | red   | 1        | 4   | medium   | rack     |
      | green | 1        | 4   | low      | rack     |
      | blue  | 1        | 4   | low      | rack     |
      | black | 1        | 4   | low      | rack     |
    When these jobs are submitted:
      | job   | replicas | cpu | priority | required | partition | partition required |
      | train | 4        | 2   | high     | spine    | 2         | rack               |
    Then "train" runs
    And every pod of "train" is in one spine
    And the pods of "train" are in 2 racks
    And "red" keeps running
    And exactly 2 pods are evicted, once each

  @extended
  Scenario: The rest of a part that has lost a pod gives way, and the other part keeps running
    Given these priority classes:
      | class | value |
      | low   | 10    |
      | high  | 1000  |
    And these jobs run:
      | job   | replicas | min available | cpu | priority | required | partition | partition required |
      | train | 4        | 2             | 2   | low      | spine    | 2         | rack               |
      | fill  | 2        | 2             | 4   | high     | spine    |           |                    |
    When pod "train-task-3" fails with exit code 1
    And these jobs are submitted:
      | job | cpu | priority |
      | big | 4   | high     |
    Then "big" runs
    And exactly 1 pod of "train" is evicted
    And exactly 2 pods of "train" run
