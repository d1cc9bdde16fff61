@extended
Feature: A queue's quota counts cards by their model
  Cards of one model do not replace cards of another: each model has a quota of its own.

  Background:
    Given the policy "card-quota"
    And these nodes:
      | node  | cpu | memory | cards | card        |
      | large | 16  | 64Gi   | 4     | NVIDIA-A100 |
      | small | 16  | 64Gi   | 4     | NVIDIA-L40  |

  Rule: The quota is a ceiling, even where cards are idle

    Scenario: The third card of a model waits although two are idle
      Given these queues:
        | queue | card quota                  |
        | team  | NVIDIA-A100 2, NVIDIA-L40 4 |
      When these jobs are submitted:
        | job   | queue | replicas | min available | cards | card        |
        | train | team  | 3        | 1             | 1     | NVIDIA-A100 |
      Then exactly 2 pods of "train" run
      And 1 pod of "train" stays pending
      And "train" waits because of "quota"

    Scenario: A gang that is larger than the quota does not start in part
      Given these queues:
        | queue | card quota                  |
        | team  | NVIDIA-A100 2, NVIDIA-L40 4 |
      When these jobs are submitted:
        | job   | queue | replicas | cards | card        |
        | train | team  | 3        | 1     | NVIDIA-A100 |
      Then "train" waits because of "NVIDIA-A100"
      And "train" runs as a whole or not at all

    Scenario: Unused quota of one model does not help another model
      Given these queues:
        | queue | card quota                  |
        | team  | NVIDIA-A100 1, NVIDIA-L40 4 |
      And these jobs run:
        | job  | queue | cards | card        |
        | held | team  | 1     | NVIDIA-A100 |
      When these jobs are submitted:
        | job  | queue | cards | card        |
        | more | team  | 1     | NVIDIA-A100 |
        | else | team  | 4     | NVIDIA-L40  |
      Then "else" runs
      And "more" stays pending

  Rule: A pod that accepts two models gets the first that it names

    Scenario: The preferred model is taken while its quota lasts, then the other
      Given these queues:
        | queue | card quota                  |
        | team  | NVIDIA-A100 2, NVIDIA-L40 2 |
      And these jobs run:
        | job    | queue | replicas | cards | card                     |
        | either | team  | 3        | 1     | NVIDIA-A100\|NVIDIA-L40  |
      When these jobs are submitted:
        | job         | queue | cards | card        |
        | third-a100  | team  | 1     | NVIDIA-A100 |
        | second-l40  | team  | 1     | NVIDIA-L40  |
      Then "second-l40" runs
      And "third-a100" waits because of "2 of 2 NVIDIA-A100"

  Rule: A pod with cards is not limited in cpu

    Scenario: Cards run beyond the queue's cpus, and work without cards does not
      Given these queues:
        | queue | capability | card quota    |
        | team  | cpu 2      | NVIDIA-A100 4 |
      And these jobs run:
        | job   | queue | cpu | cards | card        |
        | cards | team  | 8   | 4     | NVIDIA-A100 |
      When these jobs are submitted:
        | job  | queue | replicas | min available | cpu |
        | cpus | team  | 3        | 1             | 1   |
      Then exactly 2 pods of "cpus" run
      And "cards" keeps running

  Rule: A running pod counts as the card of its node, even if another model has left the cluster

    Scenario: A model leaves the cluster, and the quota of the other still holds
      Given these queues:
        | queue | card quota    |
        | team  | NVIDIA-A100 3 |
      And these jobs run:
        | job    | queue | cards | card                    |
        | either | team  | 2     | NVIDIA-A100\|NVIDIA-L40 |
      When node "small" leaves with its pods
      And these jobs are submitted:
        | job  | queue | cards | card        |
        | more | team  | 2     | NVIDIA-A100 |
        | fits | team  | 1     | NVIDIA-A100 |
      Then "fits" runs
      And "more" stays pending
      And "either" keeps running
