@dialect
Feature: Reclaim evicts a gang as a whole, even after preempt evicted one of its pods
  # Found by exploration: if only reclaim keeps gangs whole, preempt evicted one pod of a gang, reclaim all others,
  # and the first pod was reprieved at the end of the cycle.

  Scenario: A gang is evicted as a whole if preempt needs one of its pods and reclaim another
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
