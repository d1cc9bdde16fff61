Feature: What a team lends comes back
  Two teams share a node of four gpus. Each team deserves two. A team that needs fewer lends the rest.

  Background:
    Given the policy "team"
    And these nodes:
      | node | cpu | memory | gpus |
      | n1   | 32  | 256Gi  | 4    |
    And these queues:
      | queue    | deserved |
      | research | gpus 2   |
      | release  | gpus 2   |

  Rule: The owner gets back what it deserves, and no more

    Scenario: A release build gets its two gpus
      Given these jobs run:
        | job   | queue    | replicas | min available | gpus |
        | train | research | 4        | 1             | 1    |
      When these jobs are submitted:
        | job   | queue   | replicas | gpus |
        | build | release | 2        | 1    |
      Then "build" runs
      And exactly 2 pods are evicted, once each
      And "train" keeps 2 pods

    Scenario: Nobody is evicted for what a queue does not deserve
      Given these jobs run:
        | job   | queue    | replicas | min available | gpus |
        | train | research | 2        | 1             | 1    |
        | build | release  | 2        | 1             | 1    |
      When these jobs are submitted:
        | job    | queue   | replicas | gpus |
        | build2 | release | 1        | 1    |
      Then "build2" stays pending
      And nothing is evicted
