@extended
Feature: Online services reclaim the cards of offline training
  Inference and training share eight cards. Each queue may use all of them. Which work
  may reclaim from which depends on its kind (online or offline) and its priority.

  Background:
    Given the policy "cross-queue-reclaim"
    And a cluster with 8 gpus "NVIDIA-GeForce-RTX-4090"
    And these priority classes:
      | class  | value |
      | high   | 80000 |
      | medium | 60000 |
      | low    | 40000 |
    And these queues:
      | queue       | priority | card quota |
      | inference   | 80000    | 8          |
      | inference-b | 80000    | 8          |
      | training    | 20000    | 8          |
      | training-b  | 20000    | 8          |

  Rule: Offline jobs do not reclaim from each other

    Scenario: A high-priority job waits for a low-priority job of another training queue
      Given these jobs run:
        | job | queue    | priority | gpus |
        | low | training | low      | 8    |
      When these jobs are submitted:
        | job  | queue      | priority | gpus |
        | high | training-b | high     | 2    |
      Then the PodGroup of "high" is Inqueue
      And "high" stays pending
      And nothing is evicted

    Scenario: A high-priority job waits for low-priority jobs of its own and of another training queue
      Given these jobs run:
        | job   | queue      | priority | gpus |
        | low-1 | training   | low      | 4    |
        | low-2 | training-b | low      | 4    |
      When these jobs are submitted:
        | job  | queue    | priority | gpus |
        | high | training | high     | 2    |
      Then the PodGroup of "high" is Inqueue
      And "high" stays pending
      And nothing is evicted

  Rule: Online services do not reclaim from each other

    Scenario: A high-priority service waits for a low-priority service of another queue
      Given these services run:
        | service | queue     | priority | gpus |
        | low     | inference | low      | 8    |
      When these services are submitted:
        | service | queue       | priority | gpus |
        | high    | inference-b | high     | 2    |
      Then the PodGroup of "high" is Inqueue
      And "high" stays pending
      And nothing is evicted

  Rule: A high-priority service reclaims the cards of medium- and low-priority training

    Scenario Outline: A high-priority service reclaims <victim>-priority training
      Given these jobs run:
        | job   | queue    | priority | gpus |
        | train | training | <victim> | 8    |
      When these services are submitted:
        | service | queue     | priority | gpus |
        | chat    | inference | high     | 8    |
      Then "chat" runs
      And exactly these pods are evicted, once each:
        | pod          |
        | train-task-0 |
      And "train" stays pending

      Examples:
        | victim |
        | medium |
        | low    |

    Scenario: Both replicas of a service get their cards
      Given these jobs run:
        | job     | queue      | priority | gpus |
        | train-1 | training   | low      | 4    |
        | train-2 | training-b | medium   | 4    |
      When these services are submitted:
        | service | queue     | priority | replicas | gpus |
        | chat    | inference | high     | 2        | 4    |
      Then "chat" runs
      And exactly these pods are evicted, once each:
        | pod            |
        | train-1-task-0 |
        | train-2-task-0 |

    Scenario: Training may as well be a plain Kubernetes Job
      Given these Kubernetes jobs run:
        | job   | queue    | priority | gpus |
        | train | training | low      | 8    |
      When these services are submitted:
        | service | queue     | priority | gpus |
        | chat    | inference | high     | 8    |
      Then "chat" runs
      And exactly 1 pod is evicted
      And "train" is evicted

  Rule: A low-priority service does not reclaim the cards of medium- or high-priority training

    Scenario Outline: A low-priority service waits for <holder>-priority training
      Given these jobs run:
        | job   | queue    | priority | gpus |
        | train | training | <holder> | 8    |
      When these services are submitted:
        | service | queue     | priority | gpus |
        | chat    | inference | low      | 2    |
      Then the PodGroup of "chat" is Inqueue
      And "chat" stays pending
      And nothing is evicted

      Examples:
        | holder |
        | medium |
        | high   |

  Rule: Free capacity goes to online services first, then by priority

    Scenario: The service was submitted last and starts first
      Given these jobs run:
        | job    | queue    | priority | gpus |
        | holder | training | high     | 8    |
      And these jobs wait:
        | job    | queue      | priority | gpus |
        | low    | training-b | low      | 8    |
        | medium | training-b | medium   | 8    |
      And these services wait:
        | service | queue     | priority | gpus |
        | chat    | inference | low      | 8    |
      When "holder" completes
      Then "chat" runs
      And "medium" stays pending
      When "chat" is deleted
      Then "medium" runs
      And "low" stays pending
      When "medium" completes
      Then "low" runs
      And these start in this order:
        | workload |
        | chat     |
        | medium   |
        | low      |

    Scenario: The service was submitted first and starts first
      Given these jobs run:
        | job    | queue    | priority | gpus |
        | holder | training | high     | 8    |
      And these services wait:
        | service | queue     | priority | gpus |
        | chat    | inference | low      | 8    |
      And these jobs wait:
        | job    | queue      | priority | gpus |
        | medium | training-b | medium   | 8    |
        | low    | training-b | low      | 8    |
      When "holder" completes
      Then "chat" runs
      And "medium" stays pending
      When "chat" is deleted
      Then "medium" runs
      When "medium" completes
      Then "low" runs
      And these start in this order:
        | workload |
        | chat     |
        | medium   |
        | low      |
