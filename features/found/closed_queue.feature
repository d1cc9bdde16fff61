@dialect
Feature: A closed queue runs no pods without requests
  # Found by exploration: without the action enqueue, which refuses the PodGroup, backfill placed the pod.

  Scenario: A pod without requests waits until its queue is opened
    Given the policy "capacity-without-enqueue"
    And these nodes:
      | node | cpu | memory |
      | n1   | 4   | 16Gi   |
    And these queues:
      | queue |
      | team  |
    When queue "team" is closed
    Then queue "team" is Closed
    When these jobs are submitted:
      | job   | queue |
      | probe | team  |
    Then "probe" stays pending
    When queue "team" is opened
    Then "probe" runs
