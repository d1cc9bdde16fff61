@dialect
Feature: A pod that a switch of the policy keeps waiting says which
  Beside a lack of capacity, a switch may be the reason why nothing is evicted for a pod.

  Scenario: The last replicas of a service say that they may not reclaim
    Given the policy "capacity"
    And these nodes:
      | node | cpu | memory |
      | n1   | 4   | 16Gi   |
    And these queues:
      | queue | deserved |
      | guest | cpu 1    |
      | owner | cpu 3    |
    And these services run:
      | service | queue | replicas | cpu |
      | lent    | guest | 4        | 1   |
    When these services are submitted:
      | service | queue | replicas | cpu |
      | tune    | owner | 3        | 1   |
    Then exactly 1 pod of "tune" runs
    And 2 pods of "tune" stay pending
    And "tune" waits because of "reclaim: evicts only for the minimum of a job, 1 pod here (gang, tier 1)"
    And "tune" waits because of "set enableJobStarving: false of gang"
