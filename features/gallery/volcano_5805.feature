@extended @volcano-issue-5805
Feature: Volcano 5805: a gang that lost a pod with its node does not get it back
  https://github.com/volcano-sh/volcano/issues/5805, open since 2026-07-31. The plugin drf first serves the job that holds
  least. A gang that lost one pod holds the others, so a new job, which holds nothing, gets the returning capacity.

  Scenario: A gang that lost a pod gets the next free capacity before a job that holds nothing
    Given these nodes:
      | node | cpu | memory |
      | n1   | 1   | 16Gi   |
      | n2   | 1   | 16Gi   |
    And these jobs run:
      | job   | replicas | cpu |
      | train | 2        | 1   |
    And these jobs wait:
      | job  | cpu |
      | late | 1   |
    When node "n2" leaves with its pods
    Then exactly 1 pod of "train" runs
    When these nodes join:
      | node | cpu | memory |
      | n3   | 1   | 16Gi   |
    Then "train" runs
    And "late" stays pending
