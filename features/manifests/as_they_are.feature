@dialect
Feature: A team's own manifests are used unchanged
  The policy, the nodes and the queues are the files that the team applies to its cluster; they are beside this feature.

  Background:
    Given the policy of "volcano-scheduler.conf"
    And the nodes of "nodes.yaml"
    And the queues of "queues.yaml"

  Scenario: The owner gets its gpus back, and the borrower keeps what it deserves
    Given these jobs run:
      | job   | queue    | replicas | min available | gpus |
      | train | research | 8        | 1             | 1    |
    When these jobs are submitted:
      | job  | queue   | replicas | gpus |
      | chat | serving | 4        | 1    |
    Then "chat" runs
    And exactly 4 pods are evicted, once each
    And queue "research" never holds less than 4 gpus
    And queue "serving" holds at most 4 gpus
