Feature: The capability, the deserved amounts and the guarantee of a queue
  capability is a ceiling, deserved is owed and may be lent, guarantee is reserved even while the queue does not use it.

  Background:
    Given the policy "capacity"
    And these nodes:
      | node | cpu | memory |
      | n1   | 4   | 16Gi   |

  Rule: Capability is a ceiling, even in an empty cluster

    @core
    Scenario: The third pod waits although two cpus are idle
      Given these queues:
        | queue | deserved | capability |
        | team  | cpu 2    | cpu 2      |
      When these jobs are submitted:
        | job   | queue | replicas | min available | cpu |
        | train | team  | 3        | 1             | 1   |
      Then exactly 2 pods of "train" run
      And 1 pod of "train" stays pending

  Rule: A queue lends what it does not use, and gets it back when it needs it

    @extended
    Scenario: Lent cpus come back when their owner needs them, and are lent again when it is done
      Given these queues:
        | queue | deserved |
        | owner | cpu 2    |
        | guest | cpu 2    |
      And these jobs run:
        | job   | queue | replicas | min available | cpu |
        | batch | guest | 4        | 1             | 1   |
      When these jobs are submitted:
        | job  | queue | replicas | cpu |
        | tune | owner | 2        | 1   |
      Then "tune" runs
      And exactly 2 pods are evicted, once each
      When "tune" completes
      Then "batch" runs

    @extended
    Scenario: Of equal jobs the youngest is evicted first
      # Kubernetes has creation times in whole seconds: among pods of one second no rule decides which is evicted.
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
        | tune | owner | 1   |
      Then "tune" runs
      And exactly 1 pod is evicted
      And "younger" is evicted
      And "older" keeps running

    @extended
    Scenario: A queue at its deserved share loses no pods
      Given these queues:
        | queue | deserved |
        | owner | cpu 2    |
        | guest | cpu 2    |
      And these jobs run:
        | job   | queue | replicas | min available | cpu |
        | batch | guest | 2        | 1             | 1   |
        | tune  | owner | 2        | 1             | 1   |
      When these jobs are submitted:
        | job  | queue | cpu |
        | more | owner | 1   |
      Then "more" stays pending
      And nothing is evicted

  Rule: A guarantee stays free and is never reclaimed

    @extended
    Scenario: A queue cannot use what is guaranteed to another queue
      Given these queues:
        | queue | deserved | guarantee |
        | owner | cpu 2    | cpu 2     |
        | guest | cpu 2    |           |
      When these jobs are submitted:
        | job   | queue | replicas | min available | cpu |
        | batch | guest | 3        | 1             | 1   |
      Then exactly 2 pods of "batch" run
      And 1 pod of "batch" stays pending

    @extended
    Scenario: Reclaim stops at the guarantee
      Given these queues:
        | queue | deserved | guarantee |
        | owner | cpu 2    | cpu 2     |
        | guest | cpu 2    |           |
      And these jobs run:
        | job  | queue | replicas | min available | cpu |
        | tune | owner | 3        | 1             | 1   |
      When these jobs are submitted:
        | job   | queue | replicas | cpu |
        | batch | guest | 2        | 1   |
      Then "batch" runs
      And exactly 1 pod is evicted
      And exactly 2 pods of "tune" run

    @extended
    Scenario: A pod whose eviction would cut into the guarantee keeps running
      # The queue exceeds its deserved share, but has no smaller pod that could be evicted.
      Given these queues:
        | queue | deserved | guarantee |
        | owner | cpu 2    | cpu 2     |
        | guest | cpu 2    |           |
      And these jobs run:
        | job  | queue | cpu |
        | tune | owner | 3   |
      When these jobs are submitted:
        | job   | queue | replicas | cpu |
        | batch | guest | 2        | 1   |
      Then "batch" stays pending
      And nothing is evicted

  Rule: A queue's values can change while it is in use

    @extended
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

    @extended
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
        | tune | owner | 2        | 1   |
      When these queues change:
        | queue | deserved |
        | guest | cpu 2    |
        | owner | cpu 2    |
      Then "tune" runs
      And exactly 2 pods are evicted, once each
      And exactly 2 pods of "batch" run

  Rule: Values that contradict each other are refused

    @extended
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
