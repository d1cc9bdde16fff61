Feature: A gang keeps its rack when one of its nodes leaves
  The pods that still run bind the new pods to their rack, even if another rack has more room.

  Background:
    Given a policy by which higher priority preempts lower priority
    And these nodes:
      | node | cpu | memory | rack   |
      | n1   | 4   | 16Gi   | rack-a |
      | n2   | 4   | 16Gi   | rack-a |
    And these gangs run:
      | gang  | replicas | min available | cpu | required |
      | train | 2        | 1             | 4   | rack     |

  @extended
  Scenario: The new pod is placed in the same rack, not in one with more room
    When these nodes join:
      | node | cpu | memory | rack   |
      | n3   | 64  | 64Gi   | rack-b |
      | n4   | 4   | 16Gi   | rack-a |
    And node "n2" leaves with its pods
    Then "train" runs
    And every pod of "train" is in rack "rack-a"

  @extended
  Scenario: The new pod waits where its rack has no room
    When these nodes join:
      | node | cpu | memory | rack   |
      | n3   | 64  | 64Gi   | rack-b |
    And node "n2" leaves with its pods
    Then exactly 1 pod of "train" runs
    And 1 pod of "train" stays pending
    And every pod of "train" is in rack "rack-a"
