@extended @volcano-issue-3673
Feature: Volcano 3673: pods are evicted for a gang that does not fit
  https://github.com/volcano-sh/volcano/issues/3673, repaired by pull request 5067 in v1.15.0. Reclaim evicts for the
  first pod of a gang before it knows whether the other pods would fit.

  Scenario: No pod is reclaimed for a gang that would not fit
    # The queue "guest" owes two cpus. The gang needs four.
    Given the policy "capacity"
    And these nodes:
      | node | cpu | memory |
      | n1   | 4   | 16Gi   |
    And these queues:
      | queue | deserved |
      | guest | cpu 2    |
      | owner | cpu 2    |
    And these jobs run:
      | job   | queue | replicas | min available | cpu |
      | batch | guest | 4        | 1             | 1   |
    When these jobs are submitted:
      | job   | queue | replicas | cpu |
      | claim | owner | 2        | 2   |
    Then "claim" stays pending
    And nothing is evicted
