@extended @volcano-issue-5994
Feature: Volcano 5994: more pods are evicted than the claim needs
  https://github.com/volcano-sh/volcano/issues/5994, open since 2026-09-17. The action gangreclaim of v1.15 treats the
  pods above a job's minimum as one bundle, and evicts all of them even if a part of the bundle suffices.

  Scenario: One pod is reclaimed of a job that has three to spare
    Given the policy "gang-reclaim"
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
      | job   | queue | cpu |
      | claim | owner | 1   |
    Then "claim" runs
    And exactly 1 pod is evicted
    And exactly 3 pods of "batch" run
