@extended @kueue-issue-13607
Feature: Kueue 13607: quota that cannot be used is preferred to idle quota
  https://github.com/kubernetes-sigs/kueue/issues/13607, repaired in v0.19.1. A queue has quota of its own, which it may
  not exceed, and then the idle quota of the whole cluster. If its own quota is used and no running work may be evicted,
  new work still waits for its own quota, although idle quota is free.

  Scenario: Work beyond its queue's own share uses what the cluster has idle
    Given the policy "own-share-then-idle"
    And these nodes:
      | node | cpu | memory |
      | n1   | 8   | 16Gi   |
    And these queues:
      | queue   | parent | deserved |
      | org     | root   | cpu 4    |
      | team    | org    | cpu 2    |
      | sibling | org    | cpu 2    |
    And these jobs run:
      | job  | queue | cpu |
      | held | team  | 2   |
    When these jobs are submitted:
      | job  | queue | cpu |
      | more | team  | 2   |
    Then "more" runs
    And nothing is evicted
