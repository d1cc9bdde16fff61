@extended @volcano-issue-5896
Feature: Volcano 5896: a queue within its deserved share loses pods
  https://github.com/volcano-sh/volcano/issues/5896, open since 2026-08-24. In the policy that Volcano's
  documentation shows, conformance is in a tier above capacity. conformance permits almost every victim, so
  capacity, which protects deserved shares, has no vote.

  Scenario: Each of two queues gives back its surplus
    # The requests for memory keep the pods of each queue on a node of their own.
    Given the policy "capacity"
    And these nodes:
      | node | cpu | memory |
      | n-a  | 2   | 256Mi  |
      | n-b  | 5   | 20Gi   |
      | n-c  | 5   | 3Gi    |
    And these queues:
      | queue | deserved |
      | a     | cpu 6    |
      | b     | cpu 3    |
      | c     | cpu 3    |
    And these jobs run:
      | job  | queue | replicas | min available | cpu | memory |
      | b-do | b     | 5        | 1             | 1   | 4Gi    |
    And these jobs run:
      | job  | queue | replicas | min available | cpu | memory |
      | c-do | c     | 5        | 1             | 1   | 512Mi  |
    And these jobs run:
      | job  | queue | replicas | min available | cpu |
      | a-do | a     | 2        | 1             | 1   |
    When these jobs are submitted:
      | job    | queue | replicas | cpu |
      | a-more | a     | 4        | 1   |
    Then "a-more" runs
    And exactly 4 pods are evicted, once each
    And exactly 3 pods of "b-do" run
    And exactly 3 pods of "c-do" run
