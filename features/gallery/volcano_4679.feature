@extended @volcano-issue-4679
Feature: Volcano 4679: no job is admitted to a full tree of queues, so none reclaims
  https://github.com/volcano-sh/volcano/issues/4679, open since 2025-10-17. Before a job may reclaim, the plugin
  capacity checks that the job fits beside everything that runs below the root. In a full cluster no job passes this
  check, although its queue holds less than it deserves.

  Scenario: A job of a queue that holds nothing reclaims in a full tree
    Given the policy "hierarchy-with-enqueue"
    And these nodes:
      | node | cpu | memory |
      | n1   | 4   | 16Gi   |
    And these queues:
      | queue  | parent | deserved | capability |
      | a      | root   | cpu 2    | cpu 4      |
      | a-team | a      | cpu 2    | cpu 4      |
      | b      | root   | cpu 2    | cpu 4      |
      | b-team | b      | cpu 2    | cpu 4      |
    # Jobs without spare pods: the check does not count the pods above a job's minimum.
    And these jobs run:
      | job  | queue  | cpu |
      | red  | a-team | 1   |
      | blue | a-team | 1   |
      | grey | a-team | 1   |
      | pink | a-team | 1   |
    When these jobs are submitted:
      | job   | queue  | replicas | cpu |
      | claim | b-team | 2        | 1   |
    Then "claim" runs
    And exactly 2 pods are evicted, once each
