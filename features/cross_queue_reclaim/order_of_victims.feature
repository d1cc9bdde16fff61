@extended
Feature: A service evicts low-priority training before medium-priority training
  Eight cards are full of training, two cards a job. A service evicts no more than it needs, and the least important first.

  Background:
    Given the policy "cross-queue-reclaim"
    And a cluster with 8 gpus "NVIDIA-GeForce-RTX-4090"
    And these priority classes:
      | class  | value |
      | high   | 80000 |
      | medium | 60000 |
      | low    | 40000 |
    And these queues:
      | queue     | priority | card quota |
      | inference | 80000    | 8          |
      | training  | 20000    | 8          |

  Rule: Low-priority training is evicted first, and only as much as is needed

    Scenario: A service of six cards evicts both low jobs and one of the medium jobs
      # The use case that this comes from says "three low-priority jobs" of a cluster that runs two low and two medium ones.
      Given these jobs run:
        | job      | queue    | priority | gpus |
        | medium-1 | training | medium   | 2    |
        | medium-2 | training | medium   | 2    |
        | low-1    | training | low      | 2    |
        | low-2    | training | low      | 2    |
      When these services are submitted:
        | service | queue     | priority | gpus |
        | chat    | inference | high     | 6    |
      Then "chat" runs
      And exactly 3 pods are evicted, once each
      And "low-1" is evicted
      And "low-2" is evicted
      And exactly 1 of these is evicted:
        | workload |
        | medium-1 |
        | medium-2 |

    Scenario: The low jobs are evicted before the medium job
      Given these jobs run:
        | job      | queue    | priority | gpus |
        | medium-1 | training | medium   | 2    |
        | medium-2 | training | medium   | 2    |
        | low-1    | training | low      | 2    |
        | low-2    | training | low      | 2    |
      When these services are submitted:
        | service | queue     | priority | gpus |
        | chat    | inference | high     | 6    |
      Then "chat" runs
      And "low-1" is evicted before any of "medium-1, medium-2"
      And "low-2" is evicted before any of "medium-1, medium-2"

    Scenario: A second service evicts the last medium job
      Given these jobs run:
        | job      | queue    | priority | gpus |
        | medium-1 | training | medium   | 2    |
        | medium-2 | training | medium   | 2    |
        | low-1    | training | low      | 2    |
        | low-2    | training | low      | 2    |
      And these services run:
        | service | queue     | priority | gpus |
        | chat    | inference | high     | 6    |
      When these services are submitted:
        | service | queue     | priority | gpus |
        | search  | inference | high     | 2    |
      Then "search" runs
      And "chat" keeps running
      And exactly 4 pods are evicted, once each

    Scenario: Two small low jobs are evicted before one medium job of the right size
      Given these jobs run:
        | job    | queue    | priority | gpus |
        | low-1  | training | low      | 2    |
        | low-2  | training | low      | 2    |
        | medium | training | medium   | 4    |
      When these services are submitted:
        | service | queue     | priority | gpus |
        | chat    | inference | high     | 4    |
      Then "chat" runs
      And exactly these pods are evicted, once each:
        | pod          |
        | low-1-task-0 |
        | low-2-task-0 |
      And "medium" keeps running
