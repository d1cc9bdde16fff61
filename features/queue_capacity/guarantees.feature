@extended
Feature: What is guaranteed to a queue stays free for it
  https://github.com/volcano-sh/volcano/issues/4996: each queue alone is checked against the capacity that is not
  guaranteed to others. Two queues that are within their limits can use up together what is guaranteed to a third.

  Background:
    Given the policy "capacity"
    And these nodes:
      | node | cpu | memory |
      | n1   | 9   | 16Gi   |
    And these queues:
      | queue | deserved | guarantee |
      | red   | cpu 3    | cpu 2     |
      | green | cpu 3    | cpu 2     |
      | blue  | cpu 3    | cpu 2     |

  Scenario: The excess of two queues does not use up the guarantee of a third
    When these jobs are submitted:
      | job  | queue | cpu |
      | rose | red   | 4   |
      | leaf | green | 4   |
    Then exactly 1 of these runs:
      | workload |
      | rose     |
      | leaf     |

  Scenario: The queue that comes last gets its guarantee at once
    Given these jobs are submitted:
      | job  | queue | cpu |
      | rose | red   | 4   |
      | leaf | green | 4   |
    When these jobs are submitted:
      | job | queue | cpu |
      | sky | blue  | 2   |
    Then "sky" runs
    And nothing is evicted

  Scenario: The waiting job says which queue the free capacity is guaranteed to
    Given these jobs run:
      | job  | queue | cpu |
      | rose | red   | 4   |
    When these jobs are submitted:
      | job  | queue | cpu |
      | leaf | green | 4   |
    Then "leaf" stays pending
    And "leaf" waits because of "2 guaranteed to other queues (blue)"
