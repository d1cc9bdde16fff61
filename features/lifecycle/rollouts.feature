@extended
Feature: The pods of a service change while it runs
  A new version, another request or another class replaces the pods of a service one after the other (volcano#4739,
  #4786). The scheduler serves the new pods as it serves any other.

  Background:
    Given the policy "capacity-with-preempt"
    And these nodes:
      | node | cpu | memory | gpus |
      | n1   | 8   | 32Gi   | 4    |
    And these priority classes:
      | class | value |
      | low   | 100   |
      | high  | 1000  |
    And these queues:
      | queue | deserved      |
      | team  | gpus 4, cpu 8 |

  Rule: A rollout needs room for one more pod, and then gives it back

    Scenario: A service with room for one more pod gets a new version
      Given these services run:
        | service | queue | replicas | cpu | gpus |
        | chat    | team  | 3        | 1   | 1    |
      When the pods of "chat" get a new version
      Then the rollout of "chat" completes
      And nothing is evicted

    Scenario: Without room for one more pod, all pods of the older version keep running
      Given these services run:
        | service | queue | replicas | cpu | gpus |
        | chat    | team  | 3        | 1   | 1    |
      And these jobs run:
        | job   | queue | cpu | gpus |
        | batch | team  | 1   | 1    |
      When the pods of "chat" get a new version
      Then "chat" keeps running
      When "batch" completes
      Then the rollout of "chat" completes
      And nothing is evicted

  Rule: The new pods request and weigh what the new template says

    Scenario: A service whose pods request more gpus holds more of its queue
      Given these services run:
        | service | queue | replicas | cpu | gpus |
        | chat    | team  | 1        | 1   | 1    |
      When the pods of "chat" now request 2 gpus
      Then the rollout of "chat" completes
      And queue "team" holds 2 gpus
      And nothing is evicted

    Scenario: A service whose pods get a higher class preempts for them
      Given these services run:
        | service | queue | replicas | priority | cpu | gpus |
        | chat    | team  | 1        | low      | 1   | 1    |
      And these jobs run:
        | job   | queue | replicas | min available | priority | cpu | gpus |
        | batch | team  | 3        | 1             | low      | 1   | 1    |
      When the pods of "chat" now have priority class "high"
      Then the rollout of "chat" completes
      And exactly 1 pod of "batch" is evicted
