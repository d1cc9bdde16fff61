@dialect
Feature: LocalQueues of two namespaces
  The LocalQueues of two teams have the same name, and each leads to the ClusterQueue of its team.

  Scenario: The quota of a job is that of its own namespace
    Given these nodes:
      | node | cpu | memory |
      | n1   | 8   | 16Gi   |
    And the Kueue queues of "two_local_queues.yaml"
    When these jobs are submitted:
      | job        | queue | cpu |
      | red/train  | main  | 4   |
      | blue/train | main  | 4   |
    Then "blue/train" runs
    And "red/train" stays pending
