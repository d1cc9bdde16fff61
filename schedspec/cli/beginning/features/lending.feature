Feature: What a team lends comes back
  Two teams share a node of four cpus. Each deserves two; whoever needs less lends the rest.

  Background:
    Given the policy "team"
    And these nodes:
      | node | cpu | memory |
      | n1   | 4   | 16Gi   |
    And these queues:
      | queue    | deserved |
      | research | cpu 2    |
      | release  | cpu 2    |

  Rule: The owner gets back what it deserves, and no more

    Scenario: A release build gets its two cpus
      Given these jobs run:
        | job   | queue    | replicas | min available | cpu |
        | train | research | 4        | 1             | 1   |
      When these jobs are submitted:
        | job   | queue   | replicas | cpu |
        | build | release | 2        | 1   |
      Then "build" runs
      And exactly 2 pods are evicted, once each
      And "train" keeps 2 pods

    Scenario: Nobody is evicted for what a queue does not deserve
      Given these jobs run:
        | job   | queue    | replicas | min available | cpu |
        | train | research | 2        | 1             | 1   |
        | build | release  | 2        | 1             | 1   |
      When these jobs are submitted:
        | job    | queue   | replicas | cpu |
        | build2 | release | 1        | 1   |
      Then "build2" stays pending
      And nothing is evicted
