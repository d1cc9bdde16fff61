@extended
Feature: Priority classes decide what work may evict
  A class has a value, may forbid eviction for its work, and may be the class of work that names none.

  Background:
    Given the policy "preempt"
    And these nodes:
      | node | cpu | memory |
      | n1   | 4   | 16Gi   |
    And these priority classes:
      | class  | value | preemption policy | default |
      | low    | 10    |                   |         |
      | usual  | 100   | lower priority    | yes     |
      | polite | 1000  | never             |         |
      | urgent | 1000  |                   |         |
    And these jobs run:
      | job   | replicas | min available | cpu | priority |
      | batch | 2        | 1             | 2   | low      |

  Rule: Work of a class that never preempts waits for room

    Scenario: A job of a high class that never preempts waits behind a low one
      When these jobs are submitted:
        | job   | cpu | priority |
        | guest | 2   | polite   |
      Then "guest" waits because of "preemptionPolicy Never"
      And nothing is evicted

    Scenario: A job that never preempts starts before work of lower priority when room is free
      Given these jobs wait:
        | job   | cpu | priority |
        | guest | 2   | polite   |
        | later | 2   | low      |
      When pod "batch-task-0" completes
      Then "guest" runs
      And "later" stays pending
      And nothing is evicted

  Rule: Work without a class has the default class

    Scenario: A job without a class evicts work of a class below the default
      When these jobs are submitted:
        | job  | cpu |
        | make | 2   |
      Then "make" runs
      And exactly 1 pod is evicted

    Scenario: A job without a class evicts nothing of a class above the default
      Given these nodes:
        | node | cpu | memory | labels |
        | n2   | 4   | 16Gi   | zone=b |
      And these jobs run:
        | job   | replicas | min available | cpu | priority | node selector |
        | serve | 2        | 1             | 2   | urgent   | zone=b        |
      When these jobs are submitted:
        | job  | cpu | node selector |
        | make | 2   | zone=b        |
      Then "make" stays pending
      And nothing is evicted

  Rule: The deletion of a class changes nothing for work that runs

    Scenario: A job keeps running after its class is deleted
      When priority class "low" is deleted
      Then "batch" keeps running
      And nothing is evicted

    Scenario: A job of a class that is deleted can still be evicted
      When priority class "low" is deleted
      And these jobs are submitted:
        | job | cpu | priority |
        | fix | 2   | urgent   |
      Then "fix" runs
      And exactly 1 pod is evicted
