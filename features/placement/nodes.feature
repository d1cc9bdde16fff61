@extended
Feature: A policy decides which nodes pods use
  Work for single gpus that is spread over all nodes leaves no node for work that needs all gpus of one. Binpack fills nodes
  one after the other; node groups reserve nodes for the work of a queue.

  Rule: Binpack keeps whole nodes free

    Background:
      Given the policy "binpack"
      And these nodes:
        | node   | cpu | memory | gpus |
        | node-1 | 32  | 64Gi   | 4    |
        | node-2 | 32  | 64Gi   | 4    |
        | node-3 | 32  | 64Gi   | 4    |

    Scenario: Six pods with one gpu each use two of three nodes
      When these jobs are submitted:
        | job   | replicas | cpu | gpus |
        | small | 6        | 1   | 1    |
      Then "small" runs
      And the pods of "small" are packed on 2 nodes

    Scenario: A job that needs all gpus of a node starts beside small ones
      Given these jobs run:
        | job   | replicas | min available | cpu | gpus |
        | small | 5        | 1             | 1   | 1    |
      Then the pods of "small" are on 2 nodes
      When these jobs are submitted:
        | job   | cpu | gpus |
        | large | 1   | 4    |
      Then "large" runs
      And nothing is evicted

  Rule: Least allocated nodes come first where nothing packs

    Scenario: Six pods are spread evenly over three nodes
      Given the policy "capacity-without-enqueue"
      And these nodes:
        | node   | cpu | memory | gpus |
        | node-1 | 32  | 64Gi   | 4    |
        | node-2 | 32  | 64Gi   | 4    |
        | node-3 | 32  | 64Gi   | 4    |
      When these jobs are submitted:
        | job   | replicas | cpu |
        | small | 6        | 4   |
      Then the pods of "small" are spread over 3 nodes

  Rule: A queue stays within its groups of nodes

    Background:
      Given the policy "node-groups"
      And these nodes:
        | node   | cpu | memory | group | labels |
        | node-1 | 4   | 16Gi   | a     | zone=x |
        | node-2 | 4   | 16Gi   | b     | zone=x |
        | node-3 | 4   | 16Gi   |       | zone=y |
      And these queues:
        | queue | weight | node groups | preferred node groups | avoided node groups |
        | team  | 1      | a           |                       |                     |
        | tidy  | 1      |             | b                     | a                   |

    Scenario: The work of a queue runs on the group that the queue requires
      Given these jobs run:
        | job   | queue | replicas | cpu |
        | train | team  | 2        | 2   |
      Then "train" runs on a node of group "a"
      And "train-task-0" runs on "node-1"
      When these jobs are submitted:
        | job  | queue | cpu |
        | more | team  | 2   |
      Then "more" stays pending
      And no pod is on "node-2, node-3"

    Scenario: The work of a queue waits rather than use a group that the queue avoids
      Given these jobs run:
        | job   | queue | replicas | cpu |
        | serve | tidy  | 2        | 2   |
      Then "serve" runs on nodes of group "b"
      And "serve" runs on nodes with "zone=x"
      When these jobs are submitted:
        | job  | queue | cpu |
        | more | tidy  | 2   |
      Then "more" waits because of "node group"
      And no pod is on "node-1, node-3"
