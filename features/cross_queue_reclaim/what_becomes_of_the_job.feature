@dialect
Feature: What happens to a training job that lost a pod
  The gang plugin does not vote on reclaim: one pod of a gang may be evicted, and the job's own policy handles the rest.

  Background:
    Given the policy "cross-queue-reclaim-with-gang"
    And a cluster with 8 gpus "NVIDIA-GeForce-RTX-4090"
    And these priority classes:
      | class | value |
      | high  | 80000 |
      | low   | 40000 |
    And these queues:
      | queue     | priority | card quota |
      | inference | 80000    | 8          |
      | training  | 20000    | 8          |

  Rule: The job's policy on PodEvicted decides

    # The gang loses one of its two tasks on purpose: these scenarios show what happens then.
    @without-monitor-gang
    Scenario: AbortJob ends the whole job
      Given these jobs run:
        | job   | queue    | priority | replicas | gpus | on PodEvicted |
        | train | training | low      | 2        | 4    | AbortJob      |
      When these services are submitted:
        | service | queue     | priority | gpus |
        | chat    | inference | high     | 4    |
      Then "chat" runs
      And job "train" is Aborted
      And exactly 1 pod is evicted

    @without-monitor-gang
    Scenario: RestartJob makes the whole job wait for capacity
      Given these jobs run:
        | job   | queue    | priority | replicas | gpus | on PodEvicted |
        | train | training | low      | 2        | 4    | RestartJob    |
      When these services are submitted:
        | service | queue     | priority | gpus |
        | chat    | inference | high     | 4    |
      Then "chat" runs
      And job "train" goes through Restarting, Pending
      And the PodGroup of "train" is Inqueue
      And "train" stays pending
      And exactly 1 pod is evicted
      When "chat" is deleted
      Then "train" runs
