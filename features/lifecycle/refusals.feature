@extended
Feature: Work that the API server refuses
  A refusal names what is wrong, and work that runs is as before.

  Background:
    Given the policy "capacity"
    And these nodes:
      | node | cpu | memory | gpus |
      | n1   | 8   | 32Gi   | 4    |

  Scenario: A pod of a class that does not exist is refused
    Given these jobs run:
      | job   | replicas | cpu |
      | train | 2        | 1   |
    When these pods are refused because of "no PriorityClass with name urgnt":
      | pod   | priority | cpu |
      | first | urgnt    | 1   |
    Then "train" keeps running
    And nothing is evicted

  Scenario: The pods of a Kubernetes Job keep their template
    Given these Kubernetes jobs run:
      | job   | replicas | cpu |
      | train | 2        | 1   |
    When the pods of "train" now request 2 cpu
    Then it is refused because of "spec.template"
    And "train" keeps running

  @needs-validation
  Scenario: The pods of a Volcano Job keep their template
    Given these jobs run:
      | job   | replicas | cpu |
      | train | 2        | 1   |
    When the pods of "train" get a new version
    Then it is refused because of "spec.tasks"
    And "train" keeps running
