@extended
Feature: Work of several namespaces
  Two teams submit work from namespaces of their own, possibly by the same name (KAI#2095). A name such as `red/train`
  is the work train of the namespace red.

  Background:
    Given the policy "capacity"
    And these nodes:
      | node | cpu | memory | gpus |
      | n1   | 16  | 64Gi   | 4    |
    And these queues:
      | queue | deserved |
      | team  | gpus 2   |
      | other | gpus 2   |

  Scenario: Gangs of the same name in two namespaces are two gangs
    Given these jobs run:
      | job       | queue | replicas | gpus |
      | red/train | team  | 2        | 1    |
    When these jobs are submitted:
      | job        | queue | replicas | gpus |
      | blue/train | other | 3        | 1    |
    Then "blue/train" stays pending
    And "red/train" keeps running
    When "red/train" completes
    Then "blue/train" runs
    And nothing is evicted

  Scenario: A queue gets back what another namespace borrowed from it
    Given these jobs run:
      | job       | queue | replicas | min available | gpus |
      | red/train | other | 4        | 1             | 1    |
    When these jobs are submitted:
      | job   | queue | replicas | gpus |
      | train | team  | 2        | 1    |
    Then "train" runs
    And exactly 2 pods of "red/train" are evicted
    And queue "team" never holds less than 2 gpus

  Scenario: A service and its namesake in another namespace have pods of their own
    Given these services run:
      | service  | queue | replicas | cpu |
      | red/chat | team  | 2        | 1   |
      | chat     | team  | 1        | 1   |
    When "red/chat" shrinks to 1 pod
    Then exactly 1 pod of "red/chat" runs
    And exactly 1 pod of "chat" runs
    When "chat" is deleted
    Then "red/chat" keeps running
