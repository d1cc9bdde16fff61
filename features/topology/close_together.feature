Feature: The pods of a gang stay close together in the network
  Training in which all pods communicate with each other is as fast as the slowest link between two of them. A gang therefore
  requires a rack, or a spine with several racks, or it prefers to be close. Volcano has HyperNodes for this, Kubernetes a
  node label that a PodGroup names.

  Background:
    Given a policy by which higher priority preempts lower priority
    And these nodes:
      | node | cpu | memory | rack   | spine   |
      | n1   | 4   | 16Gi   | rack-a | spine-1 |
      | n2   | 4   | 16Gi   | rack-a | spine-1 |
      | n3   | 4   | 16Gi   | rack-b | spine-1 |
      | n4   | 4   | 16Gi   | rack-b | spine-1 |
      | n5   | 4   | 16Gi   | rack-c | spine-2 |
      | n6   | 4   | 16Gi   | rack-c | spine-2 |

  Rule: A required rack or spine holds all pods

    @extended
    Scenario: A gang that fits into one rack stays within one rack
      When these gangs are submitted:
        | gang  | replicas | cpu | required |
        | train | 4        | 2   | rack     |
      Then "train" runs
      And every pod of "train" is in one rack

    @extended
    Scenario: A gang waits where no rack has room, although two racks together have
      When these gangs are submitted:
        | gang  | replicas | cpu | required |
        | train | 5        | 2   | rack     |
      Then "train" stays pending
      And nothing is evicted

    @extended
    Scenario: A gang that is too large for a rack may use the racks of one spine
      When these gangs are submitted:
        | gang  | replicas | cpu | required |
        | train | 7        | 2   | spine    |
      Then "train" runs
      And every pod of "train" is in spine "spine-1"
      And the pods of "train" are in 2 racks

    @extended
    Scenario: A gang that may use a whole spine stays within a rack that has room
      When these gangs are submitted:
        | gang  | replicas | cpu | required |
        | train | 4        | 2   | spine    |
      Then "train" runs
      And every pod of "train" is in one rack

    @extended
    Scenario: A waiting gang starts in the rack that has become free
      Given these gangs run:
        | gang  | replicas | cpu | required |
        | red   | 2        | 4   | rack     |
        | green | 2        | 4   | rack     |
        | blue  | 2        | 4   | rack     |
      And these gangs wait:
        | gang  | replicas | cpu | required |
        | train | 2        | 4   | rack     |
      When "green" completes
      Then "train" runs
      And every pod of "train" is in one rack
      And nothing is evicted

  Rule: A preferred rack never makes a gang wait

    @extended
    Scenario: A gang that prefers a rack stays within one that has room
      When these gangs are submitted:
        | gang  | replicas | cpu | preferred |
        | train | 4        | 2   | rack      |
      Then "train" runs
      And every pod of "train" is in one rack

    @extended
    Scenario: A gang that prefers a rack spreads where no rack has room
      When these gangs are submitted:
        | gang  | replicas | cpu | preferred |
        | train | 10       | 2   | rack      |
      Then "train" runs
      And the pods of "train" are in 3 racks

  Rule: Running pods bind the other pods of their gang to the rack

    @extended
    Scenario: A gang grows within its rack
      Given these gangs run:
        | gang  | replicas | min available | cpu | required |
        | train | 3        | 2             | 2   | rack     |
      When "train" grows to 6 pods
      Then exactly 4 pods of "train" run
      And every pod of "train" is in one rack

  Rule: Eviction frees one rack

    @extended
    Scenario: A gang of higher priority evicts the pods of one rack only
      Given these priority classes:
        | class | value |
        | low   | 10    |
        | high  | 1000  |
      And these gangs run:
        | gang  | replicas | cpu | priority | required |
        | red   | 2        | 4   | low      | rack     |
        | green | 2        | 4   | low      | rack     |
        | blue  | 2        | 4   | low      | rack     |
      When these gangs are submitted:
        | gang  | replicas | cpu | priority | required |
        | train | 2        | 4   | high     | rack     |
      Then "train" runs
      And every pod of "train" is in one rack
      And exactly 2 pods are evicted, once each

    @extended
    Scenario: The rack whose pods have the lowest priority is freed
      Given these priority classes:
        | class  | value |
        | low    | 10    |
        | medium | 100   |
        | high   | 1000  |
      And these gangs run:
        | gang  | replicas | cpu | priority | required |
        | red   | 2        | 4   | medium   | rack     |
        | green | 2        | 4   | low      | rack     |
        | blue  | 2        | 4   | medium   | rack     |
      When these gangs are submitted:
        | gang  | replicas | cpu | priority | required |
        | train | 2        | 4   | high     | rack     |
      Then "train" runs
      And "green" is evicted
      And "red" keeps running
      And "blue" keeps running
