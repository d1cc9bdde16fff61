@extended
Feature: Rules of the queue tree

  Background:
    Given the policy "hierarchy"
    And these nodes:
      | node | cpu | memory |
      | n1   | 8   | 16Gi   |

  Rule: Pods of a sibling are evicted before pods of a cousin

    Scenario: The sibling's surplus suffices; the cousin keeps its pods
      Given these queues:
        | queue | parent | deserved |
        | a     | root   | cpu 4    |
        | b     | root   | cpu 4    |
        | a1    | a      | cpu 2    |
        | a2    | a      | cpu 2    |
        | b1    | b      | cpu 4    |
      And these jobs run:
        | job     | queue | replicas | min available | cpu |
        | sibling | a1    | 3        | 1             | 1   |
        | cousin  | b1    | 5        | 1             | 1   |
      When these jobs are submitted:
        | job  | queue | cpu |
        | tune | a2    | 1   |
      Then "tune" runs
      And exactly 1 pod is evicted
      And "sibling" is evicted
      And "cousin" keeps running

  Rule: A queue without a capability is limited by its parent's

    Scenario: A team cannot outgrow its department
      Given these queues:
        | queue | parent | deserved | capability |
        | a     | root   | cpu 4    | cpu 5      |
        | a1    | a      | cpu 2    |            |
      When these jobs are submitted:
        | job   | queue | replicas | min available | cpu |
        | batch | a1    | 6        | 1             | 1   |
      Then exactly 5 pods of "batch" run
      And 1 pod of "batch" stays pending

  Rule: A queue at what it deserves cannot reclaim

    Scenario: The next pod of a queue at its deserved waits
      Given these queues:
        | queue | parent | deserved |
        | a     | root   | cpu 3    |
        | b     | root   | cpu 4    |
      And these jobs run:
        | job   | queue | replicas | min available | cpu |
        | batch | b     | 5        | 1             | 1   |
        | tune  | a     | 3        | 1             | 1   |
      When these jobs are submitted:
        | job  | queue | cpu |
        | more | a     | 1   |
      Then "more" stays pending
      And nothing is evicted

  Rule: The plugin gang may be in a tier above capacity

    Scenario: capacity can veto an eviction that gang allows
      # The cloud provider's policy: priority, gang and conformance in the first tier, capacity in the second.
      Given the policy "hierarchy-cce"
      And these queues:
        | queue | parent | deserved |
        | a     | root   | cpu 4    |
        | b     | root   | cpu 4    |
      And these jobs run:
        | job   | queue | replicas | min available | cpu |
        | batch | b     | 6        | 1             | 1   |
        | tune  | a     | 2        | 1             | 1   |
      When these jobs are submitted:
        | job  | queue | replicas | min available | cpu |
        | more | a     | 3        | 1             | 1   |
      Then exactly 2 pods of "more" run
      And 1 pod of "more" stays pending
      And exactly 2 pods are evicted, once each
      And exactly 4 pods of "batch" run
