Feature: What becomes of a training job that lost a pod
  The gang plugin is there, but has no say in reclaim: one pod of a gang may go, and the job's own policy deals with the rest.

  Background:
    Given the policy "cross-queue-reclaim-with-gang"
    And a cluster with 8 cards "NVIDIA-GeForce-RTX-4090"
    And these priority classes:
      | class | value |
      | high  | 80000 |
      | low   | 40000 |
    And these queues:
      | queue     | priority | card quota |
      | inference | 80000    | 8          |
      | training  | 20000    | 8          |

  Rule: The job's policy on PodEvicted decides

    # The gang loses one of its two tasks by design: that is what these scenarios are about.
    @without-monitor-gang
    Scenario: AbortJob ends the whole job
      Given these jobs run:
        | job   | queue    | priority | replicas | cards | on PodEvicted |
        | train | training | low      | 2        | 4     | AbortJob      |
      When these services are submitted:
        | service | queue     | priority | cards |
        | chat    | inference | high     | 4     |
      Then "chat" runs
      And job "train" is Aborted
      And exactly 1 pod is evicted

    @without-monitor-gang
    Scenario: RestartJob makes the whole job wait for room
      Given these jobs run:
        | job   | queue    | priority | replicas | cards | on PodEvicted |
        | train | training | low      | 2        | 4     | RestartJob    |
      When these services are submitted:
        | service | queue     | priority | cards |
        | chat    | inference | high     | 4     |
      Then "chat" runs
      And job "train" goes through Restarting, Pending
      And the PodGroup of "train" is Inqueue
      And "train" stays pending
      And exactly 1 pod is evicted
      When "chat" is deleted
      Then "train" runs
