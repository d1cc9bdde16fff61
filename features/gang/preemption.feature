Feature: Preempting gangs
  What has a higher priority takes the room of what has a lower one; a gang is taken as a whole, unless it says that it
  may lose single pods.

  Background:
    Given work of higher priority takes the room of work of lower priority
    And these nodes:
      | node | cpu | memory |
      | n1   | 4   | 16Gi   |
      | n2   | 4   | 16Gi   |
    And these priority classes:
      | class | value |
      | high  | 1000  |
      | low   | 10    |

  Rule: A gang takes the room of a gang

    Scenario: The gang of higher priority runs
      Given these gangs run:
        | gang   | replicas | cpu | priority | disruption |
        | humble | 4        | 2   | low      | group      |
      When these gangs are submitted:
        | gang  | replicas | cpu | priority |
        | grand | 4        | 2   | high     |
      Then "grand" runs
      And exactly 4 pods are evicted, once each

    Scenario: Equal priority takes nothing
      Given these gangs run:
        | gang  | replicas | cpu | priority | disruption |
        | first | 4        | 2   | high     | group      |
      When these gangs are submitted:
        | gang   | replicas | cpu | priority |
        | second | 4        | 2   | high     |
      Then "second" stays pending
      And nothing is evicted

    Scenario: What does not help the whole gang is not taken
      # Two pods of the gang would find room by evictions, the third never: its room is held by its equal.
      Given these gangs run:
        | gang   | replicas | cpu | priority | disruption |
        | humble | 2        | 2   | low      | group      |
        | equal  | 2        | 2   | high     | group      |
      When these gangs are submitted:
        | gang  | replicas | cpu | priority |
        | grand | 3        | 2   | high     |
      Then "grand" stays pending
      And nothing is evicted

  Rule: A gang goes as its disruption mode says

    @needs-disruption-mode
    Scenario Outline: A gang that is disrupted by the <mode>
      Given these gangs run:
        | gang   | replicas | cpu | priority | disruption |
        | humble | 4        | 2   | low      | <mode>     |
      When these gangs are submitted:
        | gang  | replicas | cpu | priority |
        | grand | 2        | 2   | high     |
      Then "grand" runs
      And exactly <victims> pods are evicted, once each

      Examples:
        | mode  | victims |
        | pod   | 2       |
        | group | 4       |

  Rule: A single pod does not break a gang

    Scenario: A pod of higher priority takes the gang as a whole, or waits
      Given these gangs run:
        | gang   | replicas | cpu | priority | disruption |
        | humble | 8        | 1   | low      | group      |
      When these pods are submitted:
        | pod    | cpu | priority |
        | urgent | 3   | high     |
      Then "urgent" runs or is refused
      And "humble" runs as a whole or not at all
