@dialect
Feature: A small PyTorchJob starts while a large one waits
  The queue has room for one job of six pods and a little more.

  Background:
    Given these nodes:
      | node | cpu | memory |
      | n1   | 16  | 32Gi   |

  Scenario Outline: The job that fits is started, <how>
    Given the policy "<policy>"
    And these queues:
      | queue | capability |
      | test  | memory 8Gi |
    And these PyTorchJobs run:
      | job       | queue | workers | memory |
      | job-gtps2 | test  | 5       | 1Gi    |
    And these PyTorchJobs wait:
      | job       | queue | workers | memory |
      | job-xjhtm | test  | 5       | 1Gi    |
    When these PyTorchJobs are submitted:
      | job       | queue | workers | memory |
      | job-vr5xc | test  | 0       | 1Gi    |
    Then "job-vr5xc" runs
    And the PodGroup of "job-xjhtm" stays <waiting>
    When "job-gtps2" completes
    Then "job-xjhtm" runs
    And these start in this order:
      | workload  |
      | job-gtps2 |
      | job-vr5xc |
      | job-xjhtm |

    Examples:
      | how             | policy                     | waiting |
      | without enqueue | proportion-without-enqueue | Inqueue |
      | with enqueue    | proportion                 | Pending |
