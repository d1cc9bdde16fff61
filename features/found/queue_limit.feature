@extended
Feature: A job that lacks only quota evicts only for quota
  # Found by exploration: a smaller pod was evicted too, for a node on which the job did not start.

  Scenario: A small pod beside idle cpus keeps running when a larger pod frees the quota
    Given the policy "hierarchy-cce"
    And these nodes:
      | node | cpu | memory |
      | n1   | 5   | 16Gi   |
    And these priority classes:
      | class  | value |
      | urgent | 100   |
      | low    | 10    |
    And these queues:
      | queue | capability |
      | team  | cpu 6      |
    And these jobs run:
      | job   | queue | cpu | priority |
      | small | team  | 1   |          |
      | base  | team  | 3   | urgent   |
    When these nodes join:
      | node | cpu | memory |
      | n2   | 5   | 16Gi   |
    And these jobs are submitted:
      | job   | queue | cpu | priority |
      | large | team  | 2   | low      |
    Then "large" runs
    When these jobs are submitted:
      | job   | queue | cpu | priority |
      | fixes | team  | 2   | urgent   |
    Then "fixes" runs
    And "small" keeps running
    And exactly 1 pod is evicted
