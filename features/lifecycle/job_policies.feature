@extended
Feature: The policies of a job decide what its events lead to
  A Volcano Job names an action for an event, for the job or for a task: what happens when a pod fails, ends with an exit
  code, or waits too long.

  Background:
    Given the policy "capacity-without-enqueue"
    And these nodes:
      | node | cpu | memory |
      | n1   | 8   | 32Gi   |

  Rule: An action concerns the pod, its task or the job

    Scenario: RestartJob replaces every pod when one fails
      Given these jobs run:
        | job   | replicas | cpu | on PodFailed |
        | train | 3        | 1   | RestartJob   |
      When a pod of "train" fails with exit code 3
      Then all of the pods of "train" are replaced
      And job "train" goes through Restarting, Running
      And job "train" has retryCount 1
      And job "train" has version 1

    Scenario: RestartPod replaces only the pod that failed
      Given these jobs run:
        | job   | replicas | cpu | on PodFailed |
        | train | 3        | 1   | RestartPod   |
      When pod "train-task-1" fails with exit code 3
      Then exactly 1 pod of "train" is replaced
      And job "train" goes through Restarting, Running

    Scenario: RestartTask replaces the pods of the task
      Given this job with tasks runs:
        | job   | task   | replicas | cpu | on PodFailed |
        | train | master | 1        | 1   |              |
        | train | worker | 2        | 1   | RestartTask  |
      When pod "train-worker-1" fails with exit code 3
      Then exactly 2 pods of "train" are replaced
      And job "train" goes through Restarting, Running

    Scenario Outline: <action> ends the job, which is then <phase>
      Given these jobs run:
        | job   | replicas | cpu | on PodFailed |
        | train | 2        | 1   | <action>     |
      When a pod of "train" fails with exit code 1
      Then job "train" is <phase>
      And job "train" has running 0

      Examples:
        | action       | phase      |
        | AbortJob     | Aborted    |
        | TerminateJob | Terminated |
        | CompleteJob  | Completed  |

  Rule: An exit code has an action of its own

    Scenario: One exit code aborts the job, another restarts it
      Given these jobs run:
        | job   | replicas | cpu | on exit code               |
        | train | 2        | 1   | 137 RestartJob, 3 AbortJob |
      When a pod of "train" fails with exit code 137
      Then all of the pods of "train" are replaced
      And job "train" goes through Restarting, Running
      And job "train" has retryCount 1
      When a pod of "train" fails with exit code 3
      Then job "train" is Aborted

    Scenario: Another exit code leads to nothing
      Given these jobs run:
        | job   | replicas | min available | cpu | on exit code |
        | train | 2        | 1             | 1   | 3 AbortJob   |
      When a pod of "train" fails with exit code 4
      Then job "train" has failed 1
      And exactly 1 pod of "train" runs

  Rule: The policy of a task precedes that of its job

    Scenario: The failure of a master completes the job, that of a worker aborts it
      Given this job with tasks runs:
        | job   | task   | replicas | cpu | job on PodFailed | on PodFailed |
        | train | master | 1        | 1   | AbortJob         | CompleteJob  |
        | train | worker | 1        | 1   |                  |              |
      When pod "train-master-0" fails with exit code 1
      Then job "train" is Completed

  Rule: Pods may not wait forever

    Scenario: A job whose pods wait too long is aborted
      When these jobs are submitted:
        | job   | replicas | cpu | on PodPending     |
        | train | 2        | 6   | AbortJob after 5s |
      And "train" stays pending for 2 seconds
      Then job "train" is Aborted

    Scenario: A pod that takes too long to start is replaced
      When these jobs are submitted:
        | job   | replicas | cpu | start after | on PodPending       |
        | train | 2        | 1   | 1h          | RestartPod after 3s |
      Then at least 1 pod of "train" is replaced

    Scenario: A job whose pods start in time is not aborted
      Given these jobs run:
        | job   | replicas | cpu | on PodPending     |
        | train | 2        | 1   | AbortJob after 5s |
      When 8 seconds pass
      Then "train" keeps running

  Rule: Restarts are counted

    Scenario: A job fails after its last retry
      Given these jobs run:
        | job   | replicas | cpu | max retry | on PodFailed |
        | train | 2        | 1   | 2         | RestartJob   |
      When a pod of "train" fails with exit code 1
      Then job "train" has retryCount 1
      And job "train" goes through Restarting, Running
      When a pod of "train" fails with exit code 1
      Then job "train" is Failed
      And job "train" has retryCount 2

    Scenario: A task whose containers restart too often fails
      Given these jobs run:
        | job   | replicas | cpu | task retries | restart policy | on TaskFailed |
        | train | 2        | 1   | 0            | OnFailure      | AbortJob      |
      When a pod of "train" fails with exit code 1
      Then job "train" is Aborted
