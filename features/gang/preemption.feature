Feature: Preempting gangs
  Work of higher priority preempts work of lower priority. A gang is evicted as a whole, unless its disruption mode permits
  the loss of single pods.

  Background:
    Given a policy by which higher priority preempts lower priority
    And these nodes:
      | node | cpu | memory |
      | n1   | 4   | 16Gi   |
      | n2   | 4   | 16Gi   |
    And these priority classes:
      | class | value |
      | high  | 1000  |
      | low   | 10    |

  Rule: A gang can preempt a gang

    @extended
    Scenario: The gang of higher priority runs
      Given these gangs run:
        | gang   | replicas | cpu | priority | disruption |
        | resnet | 4        | 2   | low      | group      |
      When these gangs are submitted:
        | gang  | replicas | cpu | priority |
        | llama | 4        | 2   | high     |
      Then "llama" runs
      And exactly 4 pods are evicted, once each

    @core
    Scenario: A gang of equal priority evicts nothing
      Given these gangs run:
        | gang  | replicas | cpu | priority | disruption |
        | first | 4        | 2   | high     | group      |
      When these gangs are submitted:
        | gang   | replicas | cpu | priority |
        | second | 4        | 2   | high     |
      Then "second" stays pending
      And nothing is evicted

    @core
    Scenario: No pod is evicted if the whole gang would not fit
      # Evictions would free capacity for two pods of the gang, but not for the third: a gang of equal priority holds it.
      Given these gangs run:
        | gang   | replicas | cpu | priority | disruption |
        | resnet | 2        | 2   | low      | group      |
        | equal  | 2        | 2   | high     | group      |
      When these gangs are submitted:
        | gang  | replicas | cpu | priority |
        | llama | 3        | 2   | high     |
      Then "llama" stays pending
      And nothing is evicted

  Rule: Preemption respects the gang's disruption mode

    @needs-disruption-mode @extended
    Scenario Outline: A gang of disruption mode <mode> loses <victims> of its four pods
      Given these gangs run:
        | gang   | replicas | cpu | priority | disruption |
        | resnet | 4        | 2   | low      | <mode>     |
      When these gangs are submitted:
        | gang  | replicas | cpu | priority |
        | llama | 2        | 2   | high     |
      Then "llama" runs
      And exactly <victims> pods are evicted, once each

      Examples:
        | mode  | victims |
        | pod   | 2       |
        | group | 4       |

  Rule: A single pod never evicts a part of a gang

    @extended
    Scenario: A pod of higher priority preempts the gang as a whole, or waits
      Given these gangs run:
        | gang   | replicas | cpu | priority | disruption |
        | resnet | 8        | 1   | low      | group      |
      When these pods are submitted:
        | pod    | cpu | priority |
        | urgent | 3   | high     |
      Then "urgent" runs or is refused
      And "resnet" runs as a whole or not at all
