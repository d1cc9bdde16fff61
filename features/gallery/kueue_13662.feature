@extended @kueue-issue-13662
Feature: Kueue 13662: a pod evicted first returns before the last victim has terminated
  https://github.com/kubernetes-sigs/kueue/issues/13662, repaired in v0.19.2 behind the gate
  PrioritizePreemptorWorkloads. A claim needs the capacity of two jobs. The first job stops at once, is admitted
  again while the second job still terminates, and is evicted again, so the claim never runs.

  Scenario: A job gets the capacity of two jobs that stop at different times
    # The claim borrows memory, so Kueue orders it behind the job that has just stopped.
    Given the policy "capacity-claimants-first"
    And these priority classes:
      | class | value |
      | high  | 100   |
      | low   | 1     |
    And these nodes:
      | node | cpu | memory |
      | n1   | 10  | 16Gi   |
    And these queues:
      | queue | deserved    |
      | owner | cpu 10      |
      | guest | memory 16Gi |
    And these jobs run:
      | job   | queue | cpu | priority | stop after |
      | quick | guest | 1   | high     | 1s         |
      | slow  | guest | 1   | high     | 8s         |
    When these jobs are submitted:
      | job   | queue | cpu | memory | priority |
      | claim | owner | 10  | 12Gi   | low      |
    Then "claim" runs
    And exactly 2 pods are evicted, once each
