@dialect
Feature: A team's own jobs run unchanged
  The jobs, services and classes are the files that the team applies to its cluster; they are beside this feature. Their
  images are replaced, and a table replaces single fields.

  Background:
    Given the policy of "volcano-scheduler.conf"
    And the nodes of "nodes.yaml"
    And the queues of "queues.yaml"

  Scenario: The jobs of a file start, and a class that never preempts evicts nothing
    Given the jobs of "jobs.yaml" run
    Then "train" runs
    And "chat" runs
    And the PodGroup of "train" has minMember 2
    When a pod of "train" fails with exit code 1
    Then all of the pods of "train" are replaced
    And nothing is evicted

  Scenario: A column replaces a field of one job
    When the jobs of "jobs.yaml" are submitted with:
      | job   | replicas | min available | gpus |
      | train | 3        | 3             | 2    |
    Then "train" runs
    And queue "research" holds 6 gpus
    And "chat" runs

  Scenario: A row without a name is for all work of the file
    Given these queues:
      | queue | deserved |
      | spare | cpu 2    |
    When the jobs of "jobs.yaml" are submitted with:
      | queue |
      | spare |
    Then "train" runs
    And queue "spare" holds 6 gpus

  Scenario: StatefulSets and pods are read, too
    When the jobs of "more_jobs.yaml" are submitted
    Then "cache" runs
    And "shell" runs
    And queue "serving" holds 4 cpu
    When "cache" shrinks to 1 pod
    Then exactly 1 pod of "cache" runs

  @needs-pytorchjobs
  Scenario: PyTorchJobs are read, too
    When the jobs of "training.yaml" are submitted with:
      | job  | replicas | min available |
      | tune | 3        | 2             |
    Then "tune" runs
    And queue "research" holds 3 gpus
    And the PodGroup of "tune" has minMember 2

  Scenario: The quota of a namespace limits its jobs, and a LimitRange completes their pods
    When the jobs of "limited_jobs.yaml" are submitted
    Then exactly 3 pods of "batch" run
    And queue "research" holds 3 cpu

  Scenario: A limit of a pod as a whole does not raise what it requests
    When the jobs of "limited_pod.yaml" are submitted
    Then "app" runs
    And queue "research" holds 1 cpu

  Scenario: The jobs of two namespaces stay apart, also where they have the same name
    When the jobs of "two_namespaces.yaml" are submitted
    Then "red/train" runs
    And exactly 1 pod of "blue/train" runs
