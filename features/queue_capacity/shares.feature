Feature: What a queue may have, what it is owed, and what is kept for it
  capability is a ceiling, deserved is owed and may be lent, guarantee is kept free even while nobody uses it.

  Background:
    Given the policy "capacity"
    And these nodes:
      | node | cpu | memory |
      | n1   | 4   | 16Gi   |

  Rule: Capability is a ceiling, even in an empty cluster

    Scenario: The third pod waits although two cpus are idle
      Given these queues:
        | queue | deserved | capability |
        | team  | cpu 2    | cpu 2      |
      When these jobs are submitted:
        | job   | queue | replicas | min available | cpu |
        | train | team  | 3        | 1             | 1   |
      Then exactly 2 pods of "train" run
      And 1 pod of "train" stays pending
      And "train" waits because of "capability"

  Rule: What a queue does not use is lent, and given back when it asks

    Scenario: Lent cpus come back when their owner asks, and go out again when it is done
      Given these queues:
        | queue | deserved |
        | owner | cpu 2    |
        | guest | cpu 2    |
      And these jobs run:
        | job   | queue | replicas | min available | cpu |
        | batch | guest | 4        | 1             | 1   |
      When these jobs are submitted:
        | job  | queue | replicas | cpu |
        | mine | owner | 2        | 1   |
      Then "mine" runs
      And exactly 2 pods are evicted, once each
      When "mine" completes
      Then "batch" runs

    Scenario: Of equal jobs the youngest gives first
      # Kubernetes tells creation times in whole seconds: among pods of one second no rule says who goes.
      Given these queues:
        | queue | deserved |
        | owner | cpu 2    |
        | guest | cpu 2    |
      And these jobs run:
        | job   | queue | replicas | min available | cpu |
        | older | guest | 2        | 1             | 1   |
      And a second has passed
      And these jobs run:
        | job     | queue | replicas | min available | cpu |
        | younger | guest | 2        | 1             | 1   |
      When these jobs are submitted:
        | job  | queue | cpu |
        | mine | owner | 1   |
      Then "mine" runs
      And exactly 1 pod is evicted
      And "younger" is evicted
      And "older" keeps running

    Scenario: A queue at what it deserves loses nothing
      Given these queues:
        | queue | deserved |
        | owner | cpu 2    |
        | guest | cpu 2    |
      And these jobs run:
        | job   | queue | replicas | min available | cpu |
        | batch | guest | 2        | 1             | 1   |
        | mine  | owner | 2        | 1             | 1   |
      When these jobs are submitted:
        | job  | queue | cpu |
        | more | owner | 1   |
      Then "more" stays pending
      And nothing is evicted

  Rule: A guarantee is kept free, and never taken

    Scenario: A guest cannot use what is guaranteed to another queue
      Given these queues:
        | queue | deserved | guarantee |
        | owner | cpu 2    | cpu 2     |
        | guest | cpu 2    |           |
      When these jobs are submitted:
        | job   | queue | replicas | min available | cpu |
        | batch | guest | 3        | 1             | 1   |
      Then exactly 2 pods of "batch" run
      And 1 pod of "batch" stays pending

    Scenario: Reclaim stops at the guarantee
      Given these queues:
        | queue | deserved | guarantee |
        | owner | cpu 2    | cpu 2     |
        | guest | cpu 2    |           |
      And these jobs run:
        | job  | queue | replicas | min available | cpu |
        | mine | owner | 3        | 1             | 1   |
      When these jobs are submitted:
        | job   | queue | replicas | cpu |
        | batch | guest | 2        | 1   |
      Then "batch" runs
      And exactly 1 pod is evicted
      And exactly 2 pods of "mine" run

    Scenario: A pod whose eviction would cut into the guarantee stays
      # The queue is above what it deserves, and has nothing smaller to give.
      Given these queues:
        | queue | deserved | guarantee |
        | owner | cpu 2    | cpu 2     |
        | guest | cpu 2    |           |
      And these jobs run:
        | job  | queue | cpu |
        | mine | owner | 3   |
      When these jobs are submitted:
        | job   | queue | replicas | cpu |
        | batch | guest | 2        | 1   |
      Then "batch" stays pending
      And nothing is evicted

  Rule: A queue's values can change while it is in use

    Scenario: A higher capability lets the waiting pods run
      Given these queues:
        | queue | deserved | capability |
        | team  | cpu 1    | cpu 1      |
      And these jobs are submitted:
        | job   | queue | replicas | min available | cpu |
        | train | team  | 3        | 1             | 1   |
      And exactly 1 pod of "train" runs
      When these queues change:
        | queue | deserved | capability |
        | team  | cpu 1    | cpu 3      |
      Then "train" runs

    Scenario: A lower deserved lets another queue reclaim
      Given these queues:
        | queue | deserved |
        | guest | cpu 4    |
        | owner |          |
      And these jobs run:
        | job   | queue | replicas | min available | cpu |
        | batch | guest | 4        | 1             | 1   |
      And these jobs wait:
        | job  | queue | replicas | cpu |
        | mine | owner | 2        | 1   |
      When these queues change:
        | queue | deserved |
        | guest | cpu 2    |
        | owner | cpu 2    |
      Then "mine" runs
      And exactly 2 pods are evicted, once each
      And exactly 2 pods of "batch" run

  Rule: Values that contradict each other are refused

    Scenario Outline: <what> is refused
      When this queue is submitted:
        | queue | deserved   | guarantee   | capability   | weight   |
        | team  | <deserved> | <guarantee> | <capability> | <weight> |
      Then it is refused because of "<field>"

      Examples:
        | what                          | deserved | guarantee | capability | weight | field     |
        | A guarantee above deserved    | cpu 1    | cpu 2     |            |        | guarantee |
        | A deserved above capability   | cpu 3    |           | cpu 2      |        | deserved  |
        | A guarantee above capability  |          | cpu 3     | cpu 2      |        | guarantee |
        | A weight of nothing           |          |           |            | 0      | weight    |
        | An amount that is no quantity | cpu four |           |            |        | deserved  |
