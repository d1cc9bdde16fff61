@extended
Feature: A job for which the policy would evict is admitted to a full queue
  The action enqueue admits a job if it fits beside what runs in its queue and in each queue above. Volcano never admits
  a job to a full queue, so that it cannot reclaim or preempt (https://github.com/volcano-sh/volcano/issues/4235,
  https://github.com/volcano-sh/volcano/issues/5925). What the job would reclaim or preempt counts as free here.

  Scenario: A team reclaims its share from another team although their department is full
    Given the policy "hierarchy-with-enqueue"
    And these nodes:
      | node | cpu | memory |
      | n1   | 4   | 16Gi   |
      | n2   | 4   | 16Gi   |
    And these queues:
      | queue  | parent | deserved | capability |
      | dept   | root   | cpu 4    | cpu 4      |
      | team-a | dept   | cpu 2    |            |
      | team-b | dept   | cpu 2    |            |
    And these jobs run:
      | job  | queue  | cpu |
      | red  | team-a | 1   |
      | blue | team-a | 1   |
      | grey | team-a | 1   |
      | pink | team-a | 1   |
    When these jobs are submitted:
      | job   | queue  | cpu |
      | owner | team-b | 1   |
    Then "owner" runs
    And exactly 1 pod is evicted

  Scenario: A queue that has got what it deserves is not admitted for more
    Given the policy "hierarchy-with-enqueue"
    And these nodes:
      | node | cpu | memory |
      | n1   | 8   | 16Gi   |
    And these queues:
      | queue  | parent | deserved | capability |
      | dept   | root   | cpu 4    | cpu 4      |
      | team-a | dept   | cpu 2    |            |
      | team-b | dept   | cpu 2    |            |
    And these jobs run:
      | job  | queue  | cpu |
      | red  | team-a | 2   |
      | blue | team-b | 2   |
    When these jobs are submitted:
      | job  | queue  | cpu |
      | more | team-b | 1   |
    Then the PodGroup of "more" stays Pending
    And "more" waits because of "queue team-b may not reclaim"
    And nothing is evicted

  Scenario: A more important job is admitted to a full queue, and takes the place of a less important one
    Given the policy "preempt-with-enqueue"
    And these priority classes:
      | class | value |
      | high  | 1000  |
      | low   | 10    |
    And these nodes:
      | node | cpu | memory |
      | n1   | 4   | 16Gi   |
    And these jobs run:
      | job  | cpu | priority |
      | lent | 3   | low      |
    When these jobs are submitted:
      | job    | cpu | priority |
      | urgent | 3   | high     |
    Then "urgent" runs
    And exactly 1 pod is evicted

  Scenario: A job that is no more important than those in a full queue is not admitted
    Given the policy "preempt-with-enqueue"
    And these priority classes:
      | class | value |
      | high  | 1000  |
    And these nodes:
      | node | cpu | memory |
      | n1   | 4   | 16Gi   |
    And these jobs run:
      | job   | cpu | priority |
      | first | 3   | high     |
    When these jobs are submitted:
      | job  | cpu | priority |
      | next | 3   | high     |
    Then the PodGroup of "next" stays Pending
    And nothing is evicted
