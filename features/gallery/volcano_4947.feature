@extended @volcano-issue-4947
Feature: Volcano 4947: an evicted pod is placed on the freed capacity and evicted again
  https://github.com/volcano-sh/volcano/issues/4947, open since 2026-01-14. After the eviction the
  queue of the victim holds nothing, so this queue is served first, and the victim is bound again before its preemptor.

  Scenario: A pod that was evicted for another queue waits
    Given the policy "capacity"
    And these nodes:
      | node | cpu | memory |
      | n1   | 8   | 16Gi   |
    And these queues:
      | queue | deserved |
      | guest | cpu 3    |
      | owner | cpu 5    |
    And these jobs run:
      | job    | queue | cpu |
      | lender | guest | 4   |
      | small  | owner | 1   |
    When these jobs are submitted:
      | job   | queue | cpu |
      | claim | owner | 4   |
    Then "claim" runs
    And exactly 1 pod is evicted
    And "small" keeps running
