@extended
Feature: Pods run only on nodes that their row permits
  A column of a table is never read by nobody: a model of card, a label or a taint decides on nodes under every policy.

  Background:
    Given the policy "capacity"
    And these nodes:
      | node | cpu | memory | cards | card        | labels | taints          |
      | a1   | 16  | 64Gi   | 8     | NVIDIA-A100 | zone=a |                 |
      | h1   | 16  | 64Gi   | 1     | NVIDIA-H100 | zone=b |                 |
      | s1   | 16  | 64Gi   |       |             | zone=b | spot:NoSchedule |
    And these queues:
      | queue | deserved       | capability |
      | team  | cpu 32, gpus 9 |            |
      | small | cpu 1          | cpu 1      |

  Rule: A model of card selects nodes although the policy counts no models

    Scenario: Only one of nine jobs for an H100 runs on a cluster with one H100
      When these jobs are submitted:
        | job   | queue | replicas | min available | cpu | cards | card        |
        | train | team  | 9        | 1             | 1   | 1     | NVIDIA-H100 |
      Then exactly 1 pod of "train" runs
      And nothing is evicted

    Scenario: A job that accepts two models uses the cards of both
      When these jobs are submitted:
        | job   | queue | replicas | cpu | cards | card                     |
        | train | team  | 9        | 1   | 1     | NVIDIA-H100\|NVIDIA-A100 |
      Then "train" runs

  Rule: Labels and taints select nodes

    Scenario: A job waits for the nodes that it selects
      When these jobs are submitted:
        | job   | queue | replicas | min available | cpu | node selector |
        | train | team  | 2        | 1             | 16  | zone=b        |
      Then exactly 1 pod of "train" runs

    Scenario: A job that tolerates a taint runs on the tainted node, too
      When these jobs are submitted:
        | job   | queue | replicas | cpu | node selector | tolerates |
        | train | team  | 2        | 16  | zone=b        | spot      |
      Then "train" runs

  Rule: A pod without an owner belongs to the queue that it names

    Scenario: A pod above the capability of its queue waits
      When these pods are submitted:
        | pod   | queue | cpu |
        | large | small | 2   |
      Then "large" waits because of "capability"

  Rule: The tasks of a job have minimums of their own

    Scenario: A job runs with the minimum of each of its tasks
      When this job with tasks is submitted:
        | job   | queue | task   | replicas | min available | cpu | node selector |
        | train | team  | master | 1        | 1             | 4   | zone=b        |
        | train | team  | worker | 4        | 1             | 4   | zone=b        |
      Then exactly 4 pods of "train" run
