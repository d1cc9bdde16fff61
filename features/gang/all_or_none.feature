Feature: What every gang scheduler owes
  A gang is a number of pods that are useful together only. How it is written down differs from scheduler to scheduler: a
  Volcano Job, or a PodGroup of Kubernetes itself. What is owed does not.

  Background:
    Given these nodes:
      | node | cpu | memory |
      | n1   | 4   | 16Gi   |
      | n2   | 4   | 16Gi   |

  Rule: All or none

    Scenario: A gang that fits runs
      When these gangs are submitted:
        | gang  | replicas | cpu |
        | train | 4        | 2   |
      Then "train" runs

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

    Scenario: What is above the minimum runs as far as there is room
      When these gangs are submitted:
        | gang  | replicas | min available | cpu |
        | train | 6        | 3             | 2   |
      Then exactly 4 pods of "train" run

  Rule: Gangs that do not fit together do not block each other

    Scenario: Of two gangs one runs, and then the other
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

    Scenario: A small gang runs although a large one waits
      Given these gangs wait:
        | gang  | replicas | cpu |
        | large | 3        | 3   |
      When these gangs are submitted:
        | gang  | replicas | cpu |
        | small | 2        | 2   |
      Then "small" runs

  Rule: A gang can grow

    Scenario: More pods of a gang that runs
      Given these gangs run:
        | gang  | replicas | cpu |
        | train | 2        | 2   |
      When "train" grows to 4 pods
      Then exactly 4 pods of "train" run

    Scenario: Where there is no room for more, what runs goes on
      Given these gangs run:
        | gang  | replicas | cpu |
        | train | 2        | 3   |
      When "train" grows to 3 pods
      Then 1 pod of "train" stays pending
      And nothing is evicted
