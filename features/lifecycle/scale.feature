@extended
Feature: Work grows and shrinks while it runs
  A job or a service changes the number of its pods (volcano#4072); a user suspends a job and resumes it later.

  Background:
    Given the policy "capacity-without-enqueue"
    And these nodes:
      | node | cpu | memory |
      | n1   | 8   | 32Gi   |
    And these queues:
      | queue | deserved | capability |
      | team  | cpu 6    | cpu 6      |
      | other | cpu 2    |            |

  Rule: More pods start as far as there is room

    Scenario: A job that grows gets the pods that its queue may have
      Given these jobs run:
        | job   | queue | replicas | min available | cpu |
        | train | team  | 2        | 1             | 2   |
      When "train" grows to 5 pods
      Then exactly 3 pods of "train" run
      And queue "team" holds 6 cpu
      And nothing is evicted

    Scenario: A service that grows gets more pods
      Given these services run:
        | service | queue | replicas | cpu |
        | chat    | team  | 1        | 2   |
      When "chat" grows to 3 pods
      Then exactly 3 pods of "chat" run

  Rule: A job that needs more pods than before keeps those that run, and waits for the rest together

    Scenario: A job with room for all that it needs gets them
      Given these jobs run:
        | job   | queue | replicas | min available | cpu |
        | train | team  | 2        | 1             | 1   |
      When "train" grows to 6 pods, of which 6 are needed
      Then exactly 6 pods of "train" run
      And the PodGroup of "train" has minMember 6

    Scenario: A job without room for all that it needs gets none of the new pods
      Given these jobs run:
        | job   | queue | replicas | cpu |
        | train | team  | 2        | 2   |
      When "train" grows to 4 pods, of which 4 are needed
      Then the PodGroup of "train" has minMember 4
      And exactly 2 pods of "train" stay pending
      And nothing is evicted

  Rule: Fewer pods make room

    Scenario: A pod that completes leaves its room to the next job
      Given these Kubernetes jobs run:
        | job   | queue | replicas | cpu |
        | sweep | team  | 3        | 2   |
      And these jobs wait:
        | job  | queue | cpu |
        | next | team  | 2   |
      When exactly 1 pod of "sweep" completes
      Then "next" runs
      And exactly 2 pods of "sweep" run
      And nothing is evicted

    Scenario: A job that shrinks loses its last pods
      Given these jobs run:
        | job   | queue | replicas | min available | cpu |
        | train | team  | 3        | 1             | 2   |
      When "train" shrinks to 1 pod
      Then exactly these pods run:
        | pod          |
        | train-task-0 |
      And nothing is evicted

    Scenario: A job whose gang is all of its pods can shrink
      Given these jobs run:
        | job   | queue | replicas | cpu |
        | train | team  | 3        | 2   |
      When "train" shrinks to 2 pods
      Then exactly 2 pods of "train" run
      And the PodGroup of "train" has minMember 2

    Scenario: A service that shrinks makes room for a job that waits
      Given these services run:
        | service | queue | replicas | cpu |
        | chat    | team  | 3        | 2   |
      And these jobs wait:
        | job   | queue | cpu |
        | train | team  | 4   |
      When "chat" shrinks to 1 pod
      Then "train" runs
      And nothing is evicted

  Rule: A suspended job has no pods, and its room is free

    Scenario Outline: <Work> are suspended and resumed
      Given these <work> run:
        | job   | queue | replicas | cpu |
        | train | team  | 3        | 2   |
      When "train" is suspended
      Then "train" has no pods
      And queue "team" holds 0 cpu
      When "train" is resumed
      Then "train" runs
      And nothing is evicted

      Examples:
        | Work            | work            |
        | Volcano Jobs    | jobs            |
        | Kubernetes Jobs | Kubernetes jobs |

    Scenario: A suspended PyTorchJob has no pods
      Given these PyTorchJobs run:
        | job   | queue | workers | cpu |
        | train | team  | 2       | 2   |
      When "train" is suspended
      Then "train" has no pods
      When "train" is resumed
      Then "train" runs
