@extended
Feature: What a queue deserves follows weights, cluster and requests

  Background:
    Given the policy "proportion"

  Rule: Deserved follows the weights

    Scenario: Weights of one and three share four cpus
      Given these nodes:
        | node | cpu | memory |
        | n1   | 4   | 16Gi   |
      And these queues:
        | queue | weight |
        | small | 1      |
        | large | 3      |
      When these jobs are submitted:
        | job | queue | replicas | min available | cpu |
        | s   | small | 4        | 1             | 1   |
        | l   | large | 4        | 1             | 1   |
      Then exactly 1 pod of "s" runs
      And exactly 3 pods of "l" run
      And these queues have:
        | queue | deserved | allocated |
        | small | cpu 1    | cpu 1     |
        | large | cpu 3    | cpu 3     |

  Rule: Deserved follows the cluster

    Scenario: A new node raises the deserved share
      Given these nodes:
        | node | cpu | memory |
        | n1   | 4   | 16Gi   |
      And these queues:
        | queue | weight |
        | a     | 1      |
        | b     | 1      |
      And these jobs are submitted:
        | job  | queue | replicas | min available | cpu |
        | a-do | a     | 4        | 1             | 1   |
        | b-do | b     | 4        | 1             | 1   |
      And exactly 2 pods of "a-do" run
      And exactly 2 pods of "b-do" run
      When these nodes join:
        | node | cpu | memory |
        | n2   | 4   | 16Gi   |
      Then "a-do" runs
      And "b-do" runs
      And these queues have:
        | queue | deserved |
        | a     | cpu 4    |
        | b     | cpu 4    |

    Scenario: A removed node lowers the deserved share
      Given these nodes:
        | node | cpu | memory |
        | n1   | 4   | 16Gi   |
        | n2   | 4   | 16Gi   |
      And these queues:
        | queue | weight |
        | a     | 1      |
        | b     | 1      |
      And these jobs run:
        | job  | queue | replicas | min available | cpu |
        | a-do | a     | 4        | 1             | 1   |
        | b-do | b     | 4        | 1             | 1   |
      When node "n2" leaves with its pods
      Then these queues have:
        | queue | deserved | allocated |
        | a     | cpu 2    | cpu 2     |
        | b     | cpu 2    | cpu 2     |
      And exactly 2 pods of "a-do" run
      And exactly 2 pods of "b-do" run

  Rule: A queue never deserves more than it requests

    Scenario: The small queue uses what the large one does not request
      Given these nodes:
        | node | cpu | memory |
        | n1   | 4   | 16Gi   |
      And these queues:
        | queue | weight |
        | small | 1      |
        | large | 3      |
      And these jobs run:
        | job | queue | replicas | min available | cpu |
        | s   | small | 3        | 1             | 1   |
      When these jobs are submitted:
        | job | queue | cpu |
        | l   | large | 1   |
      Then "l" runs
      And "s" keeps running
      And these queues have:
        | queue | deserved |
        | small | cpu 3    |
        | large | cpu 1    |
