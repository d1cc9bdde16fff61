Feature: The conditions of reclaim
  Each scenario varies one condition while all others are met.

  Background:
    Given these nodes:
      | node | cpu | memory |
      | n1   | 4   | 16Gi   |

  Rule: The victim's queue

    @extended
    Scenario Outline: With reclaimable <flag>, a queue loses <victims> of its pods
      Given the policy "proportion"
      And these queues:
        | queue | weight | reclaimable |
        | guest | 1      | <flag>      |
        | owner | 1      | yes         |
      And these jobs run:
        | job   | queue | replicas | min available | cpu |
        | batch | guest | 4        | 1             | 1   |
      When these jobs are submitted:
        | job  | queue | replicas | cpu |
        | tune | owner | 2        | 1   |
      Then "tune" <claimant>
      And exactly <victims> pods are evicted, once each

      Examples:
        | flag | claimant      | victims |
        | yes  | runs          | 2       |
        | no   | stays pending | 0       |

    @extended
    Scenario Outline: A queue <relation> what it deserves loses <victims> of its pods
      Given the policy "capacity"
      And these queues:
        | queue | deserved |
        | guest | <guest>  |
        | owner | cpu 2    |
      And these jobs run:
        | job   | queue | replicas | min available | cpu |
        | batch | guest | 4        | 1             | 1   |
      When these jobs are submitted:
        | job  | queue | replicas | cpu |
        | tune | owner | 2        | 1   |
      Then "tune" <claimant>
      And exactly <victims> pods are evicted, once each

      Examples:
        | relation | guest | claimant      | victims |
        | above    | cpu 2 | runs          | 2       |
        | at       | cpu 4 | stays pending | 0       |

  Rule: The victim itself

    @dialect
    Scenario Outline: A job whose pods say preemptable <annotation> loses <victims> of them
      Given the policy "proportion"
      And these queues:
        | queue | weight |
        | guest | 1      |
        | owner | 1      |
      And these jobs run:
        | job   | queue | replicas | min available | cpu | preemptable  |
        | batch | guest | 4        | 1             | 1   | <annotation> |
      When these jobs are submitted:
        | job  | queue | replicas | cpu |
        | tune | owner | 2        | 1   |
      Then "tune" <claimant>
      And exactly <victims> pods are evicted, once each

      Examples:
        | annotation | claimant      | victims |
        | true       | runs          | 2       |
        | false      | stays pending | 0       |

    @dialect
    Scenario: A pod that is bound and does not run yet is not evicted
      Given the policy "proportion"
      And these queues:
        | queue | weight |
        | guest | 1      |
        | owner | 1      |
      And these jobs are bound:
        | job   | queue | replicas | min available | cpu | start after |
        | batch | guest | 4        | 1             | 1   | 600s        |
      When these jobs are submitted:
        | job  | queue | replicas | cpu |
        | tune | owner | 2        | 1   |
      Then "tune" stays pending
      And nothing is evicted

  Rule: The victim's gang, if gang and the queue plugin are in one tier

    @dialect
    Scenario Outline: A job that needs <min available> of its four pods loses <victims>
      Given the policy "proportion-with-gang-in-one-tier"
      And these queues:
        | queue | weight |
        | guest | 1      |
        | owner | 1      |
      And these jobs run:
        | job   | queue | replicas | min available   | cpu |
        | batch | guest | 4        | <min available> | 1   |
      When these jobs are submitted:
        | job  | queue | replicas | cpu |
        | tune | owner | 2        | 1   |
      Then "tune" <claimant>
      And exactly <victims> pods are evicted, once each

      Examples:
        | min available | claimant      | victims |
        | 2             | runs          | 2       |
        | 3             | stays pending | 0       |
        | 4             | stays pending | 0       |

  Rule: Tiers and actions

    @dialect
    Scenario: A gang that the plugin gang protects in one tier can be evicted by the next
      # proportion is one tier below gang. gang permits no victim, so proportion decides, and the whole gang is evicted.
      Given the policy "proportion"
      And these queues:
        | queue | weight |
        | guest | 1      |
        | owner | 1      |
      And these jobs run:
        | job   | queue | replicas | cpu |
        | first | guest | 2        | 1   |
        | other | guest | 2        | 1   |
      When these jobs are submitted:
        | job  | queue | replicas | cpu |
        | tune | owner | 2        | 1   |
      Then "tune" runs
      And exactly 2 pods are evicted, once each
      And exactly 1 of these is evicted:
        | workload |
        | first    |
        | other    |

    @extended
    Scenario: Without the reclaim action nothing is evicted
      Given the policy "without-reclaim"
      And these queues:
        | queue | weight |
        | guest | 1      |
        | owner | 1      |
      And these jobs run:
        | job   | queue | replicas | min available | cpu |
        | batch | guest | 4        | 1             | 1   |
      When these jobs are submitted:
        | job  | queue | replicas | cpu |
        | tune | owner | 2        | 1   |
      Then "tune" stays pending
      And nothing is evicted
