Feature: Pods share cards by memory
  A notebook needs a few gibibytes of a card, not a whole one. Several pods share a card; each gets a part of one card,
  never parts of two. The device plugin reads the card from the pod's annotation `volcano.sh/gpu-index`.

  Background:
    Given the policy "shared-cards"
    And these nodes:
      | node  | cpu | memory | shared gpus | card memory |
      | gpu-1 | 32  | 128Gi  | 2           | 24Gi        |

  Rule: A card is never shared beyond its memory

    @extended
    Scenario: Pods share one card as long as its memory suffices
      When these jobs are submitted:
        | job      | replicas | cpu | gpu memory |
        | notebook | 2        | 1   | 8Gi        |
        | viewer   | 1        | 1   | 8Gi        |
      Then "notebook" runs
      And "viewer" runs
      And the pods of "notebook" share 1 card
      And "notebook" and "viewer" share a card

    @extended
    Scenario: A pod waits if no single card has enough memory, although two cards together have
      Given these jobs run:
        | job      | replicas | cpu | gpu memory |
        | training | 2        | 1   | 14Gi       |
      When these jobs are submitted:
        | job   | replicas | cpu | gpu memory |
        | large | 1        | 1   | 12Gi       |
      Then "large" waits because of "gpu-1: the freest card has 10240 of 24576 MiB free"
      And nothing is evicted

    @extended
    Scenario: A waiting pod gets a card that becomes free
      Given these jobs run:
        | job  | replicas | cpu | gpu memory |
        | red  | 1        | 1   | 14Gi       |
        | blue | 1        | 1   | 14Gi       |
      And these jobs wait:
        | job   | replicas | cpu | gpu memory |
        | large | 1        | 1   | 20Gi       |
      When "red" completes
      Then "large" runs
      And "large" and "blue" share no card

    @extended
    Scenario: A gang waits as a whole where one of its pods finds no card
      When these gangs are submitted:
        | gang  | replicas | cpu | gpu memory |
        | train | 3        | 1   | 14Gi       |
      Then "train" stays pending
      And nothing is evicted

  Rule: Eviction frees one card

    @extended
    Scenario: Only the pods of one card are evicted for a pod of higher priority
      Given these priority classes:
        | class  | value |
        | low    | 10    |
        | medium | 100   |
        | high   | 1000  |
      And these jobs run:
        | job   | replicas | cpu | priority | gpu memory |
        | red   | 1        | 1   | low      | 20Gi       |
        | green | 1        | 1   | medium   | 20Gi       |
      When these jobs are submitted:
        | job    | replicas | cpu | priority | gpu memory |
        | urgent | 1        | 1   | high     | 16Gi       |
      Then "urgent" runs
      And "red" is evicted
      And "green" keeps running
      And "urgent" and "green" share no card

  Rule: What a queue deserves can be the memory of cards

    @extended
    Scenario: A queue reclaims the memory of cards that it deserves
      Given these queues:
        | queue | deserved                            |
        | team  | cpu 16, volcano.sh/gpu-memory 24576 |
        | other | cpu 16, volcano.sh/gpu-memory 24576 |
      And these jobs run:
        | job   | queue | replicas | min available | cpu | gpu memory |
        | batch | other | 4        | 1             | 1   | 12Gi       |
      When these jobs are submitted:
        | job   | queue | replicas | cpu | gpu memory |
        | fresh | team  | 1        | 1   | 24Gi       |
      Then "fresh" runs
      And exactly 2 pods are evicted, once each
      And "fresh" and "batch" share no card
