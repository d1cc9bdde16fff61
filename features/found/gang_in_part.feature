@dialect
Feature: A gang that reclaim evicts keeps no pod that preempt took from it
  # Found by exploration: if only reclaim keeps gangs whole, preempt evicted one pod of a gang, reclaim all others,
  # and the first pod was reprieved at the end of the cycle.

  Scenario: A gang goes as a whole where preempt takes one pod and reclaim needs another
    Given the policy "hierarchy-cce"
    And these nodes:
      | node | cpu | memory |
      | n1   | 4   | 16Gi   |
    And these queues:
      | queue  | deserved |
      | lender |          |
      | owner  | cpu 1    |
    And these priority classes:
      | class | value |
      | high  | 100   |
    And these jobs run:
      | job | queue  | replicas | cpu |
      | old | lender | 4        | 1   |
    When these jobs are submitted:
      | job    | queue  | priority | cpu |
      | urgent | lender | high     | 1   |
      | claim  | owner  |          | 1   |
    Then "urgent" runs
    And "claim" runs
    And exactly 4 pods are evicted, once each
    And "old" stays pending
