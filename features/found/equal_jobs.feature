@extended
Feature: The reason why a job waits is published
  # Found by exploration of Kueue: a job that equals a refused job got no reason.

  Scenario: Each of two equal waiting jobs has a published reason
    Given the policy "capacity"
    And these nodes:
      | node | cpu | memory |
      | n1   | 4   | 16Gi   |
    And these queues:
      | queue | deserved | capability |
      | team  | cpu 2    | cpu 2      |
    And these jobs run:
      | job   | queue | cpu |
      | first | team  | 2   |
    When these jobs are submitted:
      | job    | queue | cpu |
      | second | team  | 2   |
    Then "second" runs or is refused
    When these jobs are submitted:
      | job   | queue | cpu |
      | third | team  | 2   |
    Then "third" runs or is refused
    And "second" stays pending
    And "third" stays pending
