Feature: What every gang scheduler must do
  A gang is a set of pods that are useful together only. Schedulers differ in how a gang is written (a Volcano Job, or a
  PodGroup of Kubernetes), but not in what they must do.

  Background:
    Given these nodes:
      | node | cpu | memory |
      | n1   | 4   | 16Gi   |
      | n2   | 4   | 16Gi   |

  Rule: All or none

    @core
    Scenario: A gang that fits runs
      When these gangs are submitted:
        | gang  | replicas | cpu |
        | train | 4        | 2   |
      Then "train" runs

    @core
    Scenario: A gang that does not fit as a whole binds nothing, and runs as soon as it fits
      Given these gangs run:
        | gang  | replicas | cpu |
        | first | 4        | 1   |
      When these gangs are submitted:
        | gang   | replicas | cpu |
        | second | 4        | 2   |
      Then "second" stays pending
      And "first" keeps running
      When "first" completes
      Then "second" runs

    @extended
    Scenario: Pods above the minimum run as far as capacity allows
      When these gangs are submitted:
        | gang  | replicas | min available | cpu |
        | train | 6        | 3             | 2   |
      Then exactly 4 pods of "train" run

  Rule: Gangs that do not fit together do not block each other

    @core
    Scenario: Two gangs that compete run one after the other
      When these gangs are submitted:
        | gang | replicas | cpu |
        | red  | 3        | 2   |
        | blue | 3        | 2   |
      Then exactly 1 of these runs:
        | workload |
        | red      |
        | blue     |
      When whichever of "red, blue" runs completes
      Then each of "red, blue" has run

    @core
    Scenario: A small gang runs although a large one waits
      Given these gangs wait:
        | gang  | replicas | cpu |
        | large | 3        | 3   |
      When these gangs are submitted:
        | gang  | replicas | cpu |
        | small | 2        | 2   |
      Then "small" runs

  Rule: A gang can grow

    @extended
    Scenario: A running gang gets more pods
      Given these gangs run:
        | gang  | replicas | cpu |
        | train | 2        | 2   |
      When "train" grows to 4 pods
      Then exactly 4 pods of "train" run

    @extended
    Scenario: Without capacity for more pods, the running pods continue
      Given these gangs run:
        | gang  | replicas | cpu |
        | train | 2        | 3   |
      When "train" grows to 3 pods
      Then 1 pod of "train" stays pending
      And nothing is evicted
