@extended
Feature: What queues deserve may be said as parts of the cluster
  A part is one of what all nodes of the scenario have.

  Background:
    Given the policy "capacity"
    And these nodes:
      | node | cpu | memory | gpus |
      | n1   | 32  | 64Gi   | 4    |
      | n2   | 32  | 64Gi   | 4    |
    And these queues:
      | queue    | deserved                                    | capability              |
      | training | half of the cpu, a quarter of the gpus      | all but one of the gpus |
      | serving  | half of the cpu, three quarters of the gpus |                         |
    And these jobs run:
      | job   | queue    | replicas | min available | cpu | gpus |
      | train | training | 7        | 1             | 1   | 1    |

  Scenario: A queue borrows up to its capability
    When these jobs are submitted:
      | job  | queue    | cpu | gpus |
      | more | training | 1   | 1    |
    Then "more" stays pending
    And "more" waits because of "capability"

  Scenario: The other queue gets back its three quarters
    Given these jobs run:
      | job   | queue   | cpu | gpus |
      | other | serving | 1   | 1    |
    When these jobs are submitted:
      | job  | queue   | replicas | cpu | gpus |
      | chat | serving | 5        | 1   | 1    |
    Then "chat" runs
    And queue "training" holds a quarter of the gpus
    And exactly 2 pods of "train" run
