@dialect
Feature: Of two waiting PyTorchJobs, the one of higher priority starts first
  The queue has room for one job of six pods at a time.

  Background:
    Given these nodes:
      | node | cpu | memory |
      | n1   | 16  | 32Gi   |
    And these priority classes:
      | class         | value |
      | high-priority | 1000  |

  Scenario Outline: The high-priority job overtakes, <how>
    Given the policy "<policy>"
    And these queues:
      | queue | capability |
      | test  | memory 8Gi |
    And these PyTorchJobs run:
      | job       | queue | priority      | workers | memory |
      | job-6wgnj | test  | high-priority | 5       | 1Gi    |
    When these PyTorchJobs are submitted:
      | job       | queue | priority | workers | memory |
      | job-2jmz2 | test  |          | 5       | 1Gi    |
    And these PyTorchJobs are submitted:
      | job       | queue | priority      | workers | memory |
      | job-58cjb | test  | high-priority | 5       | 1Gi    |
    Then the PodGroup of "job-2jmz2" has minMember 6
    And the PodGroup of "job-2jmz2" stays <waiting>
    And the PodGroup of "job-58cjb" has minMember 6
    And the PodGroup of "job-58cjb" stays <waiting>
    When "job-6wgnj" completes
    Then "job-58cjb" runs
    And "job-2jmz2" stays pending
    When "job-58cjb" completes
    Then "job-2jmz2" runs
    When "job-2jmz2" completes
    Then these start in this order:
      | workload  |
      | job-6wgnj |
      | job-58cjb |
      | job-2jmz2 |
    And the PodGroup of "job-58cjb" goes through Inqueue, Running
    And PyTorchJob "job-58cjb" goes through Created, Running, Succeeded

    Examples:
      | how             | policy                     | waiting |
      | without enqueue | proportion-without-enqueue | Inqueue |
      | with enqueue    | proportion                 | Pending |
