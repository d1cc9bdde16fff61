@extended
Feature: A department reclaims its share, from a sibling queue first
  Eight cpus. child-queue-a and child-queue-b deserve four each; within child-queue-a two teams deserve two each.

  Background:
    Given the policy "hierarchy"
    And these nodes:
      | node | cpu | memory |
      | n1   | 4   | 8Gi    |
      | n2   | 4   | 8Gi    |
    And these queues:
      | queue             | parent        | deserved          | capability         |
      | child-queue-a     | root          | cpu 4, memory 8Gi | cpu 5, memory 10Gi |
      | child-queue-b     | root          | cpu 4, memory 8Gi |                    |
      | subchild-queue-a1 | child-queue-a | cpu 2, memory 4Gi |                    |
      | subchild-queue-a2 | child-queue-a | cpu 2, memory 4Gi |                    |

  Scenario: job-b reclaims one cpu from its sibling's queue and one from its cousin's
    # The document's text puts job-b into subchild-queue-a2, its YAML into subchild-queue-a1; its outcome needs the former.
    Given these jobs run:
      | job   | queue             | task | replicas | min available | cpu | memory |
      | job-a | subchild-queue-a1 | test | 3        | 1             | 1   | 2Gi    |
      | job-c | child-queue-b     | test | 5        | 1             | 1   | 2Gi    |
    When these jobs are submitted:
      | job   | queue             | task | replicas | min available | cpu | memory |
      | job-b | subchild-queue-a2 | test | 2        | 1             | 1   | 2Gi    |
    Then "job-b" runs
    And exactly 2 pods are evicted, once each
    And "job-a" is evicted
    And "job-c" is evicted
    And 1 pod of "job-a" stays pending
    And 1 pod of "job-c" stays pending
    When "job-b" completes
    Then "job-a" runs
    And "job-c" runs
    And exactly 2 pods are evicted, once each
