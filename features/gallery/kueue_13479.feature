@extended @kueue-issue-13479
Feature: Kueue 13479: a queue of weight 0 is served first
  https://github.com/kubernetes-sigs/kueue/issues/13479, repaired in v0.19.1. Kueue divides what a queue used by its
  weight. Zero use by weight 0 is not a number (NaN), which sorts before every number.

  Scenario: A queue that deserves nothing is served after a queue that deserves something
    # The jobs differ in memory: Kueue publishes no reason for a job that equals a job which it has just refused.
    Given the policy "share-of-use"
    And these nodes:
      | node | cpu | memory |
      | n1   | 1   | 16Gi   |
    And these queues:
      | queue      | deserved |
      | background | cpu 0    |
      | team       | cpu 2    |
    And these jobs wait:
      | job   | queue      | cpu |
      | spare | background | 2   |
    And a second has passed
    And these jobs wait:
      | job  | queue | cpu | memory |
      | work | team  | 2   | 1Gi    |
    When these nodes join:
      | node | cpu | memory |
      | n2   | 2   | 16Gi   |
    Then "work" runs
    And "spare" stays pending
