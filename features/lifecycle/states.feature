@dialect
Feature: The states of jobs, PodGroups and queues

  Background:
    Given the policy "proportion"
    And these nodes:
      | node | cpu | memory |
      | n1   | 4   | 16Gi   |
    And these queues:
      | queue | weight |
      | team  | 1      |

  Rule: A job waits, runs and completes, and its PodGroup with it

    Scenario: From submission to completion
      When these jobs are submitted:
        | job   | queue | replicas | cpu |
        | train | team  | 2        | 1   |
      Then "train" runs
      And the PodGroup of "train" goes through Pending, Inqueue, Running
      When "train" completes
      Then job "train" is Completed
      And job "train" goes through Pending, Running, Completed

    Scenario: A job that does not fit waits, and its PodGroup says why
      When these jobs are submitted:
        | job  | queue | replicas | cpu |
        | wide | team  | 2        | 3   |
      Then job "wide" is Pending
      And "wide" stays pending
      And "wide" waits because of "6 requested"

    Scenario: A gang of which only a part fits waits as a whole
      # The cluster has enough cpus to admit the job, but no node has enough for the third pod.
      Given these nodes:
        | node | cpu | memory |
        | n2   | 4   | 16Gi   |
      When these jobs are submitted:
        | job  | queue | replicas | cpu   |
        | wide | team  | 3        | 2500m |
      Then the PodGroup of "wide" is Inqueue
      And "wide" stays pending
      And "wide" waits because of "gang"

    Scenario: A pod that fails fails the job
      Given these jobs run:
        | job   | queue | cpu | max retry |
        | train | team  | 1   | 1         |
      When pod "train-task-0" fails with exit code 3
      Then job "train" is Failed

  Rule: A job can be aborted and resumed

    Scenario: Aborted and resumed by command
      Given these jobs run:
        | job   | queue | replicas | cpu |
        | train | team  | 2        | 1   |
      Then job "train" is Running
      When job "train" is aborted
      Then job "train" is Aborted
      And job "train" goes through Running, Aborting, Aborted
      And "train" has no pods
      When job "train" is resumed
      Then "train" runs

  Rule: A job's policies decide what an event means

    Scenario: PodEvicted restarts the whole job
      Given these queues:
        | queue  | weight |
        | rivals | 1      |
      And these jobs run:
        | job   | queue | replicas | min available | cpu | on PodEvicted |
        | train | team  | 4        | 1             | 1   | RestartJob    |
      When these jobs are submitted:
        | job   | queue  | replicas | cpu |
        | rival | rivals | 2        | 1   |
      Then "rival" runs
      And job "train" goes through Running, Restarting, Pending, Running
      And exactly 2 pods of "train" run

    Scenario: TaskCompleted completes the whole job
      Given this job with tasks runs:
        | job   | queue | task   | replicas | cpu | on TaskCompleted |
        | train | team  | master | 1        | 1   | CompleteJob      |
        | train | team  | worker | 2        | 1   |                  |
      When pod "train-master-0" completes
      Then job "train" is Completed

  Rule: A queue is open, closing, closed

    Scenario: A closed queue accepts no new jobs
      When queue "team" is closed
      Then queue "team" is Closed
      When these jobs are submitted:
        | job  | queue | cpu |
        | late | team  | 1   |
      Then "late" has no pods
      And the PodGroup of "late" stays Pending
      When queue "team" is opened
      Then queue "team" is Open
      And "late" runs

    Scenario: A queue with work stays Closing until the work is done
      Given these jobs run:
        | job   | queue | cpu |
        | train | team  | 1   |
      When queue "team" is closed
      Then queue "team" is Closing
      And "train" keeps running
      When "train" is deleted
      Then queue "team" is Closed

  Rule: Pods without requests are backfilled

    Scenario: A pod without requests runs in a full cluster
      Given these jobs run:
        | job   | queue | cpu |
        | train | team  | 4   |
      When these jobs are submitted:
        | job   | queue |
        | probe | team  |
      Then "probe" runs
      And "train" keeps running

    Scenario: Without the backfill action a pod without requests waits
      Given the policy "without-backfill"
      When these jobs are submitted:
        | job   | queue |
        | probe | team  |
      Then "probe" stays pending
