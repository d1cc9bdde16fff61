@dialect
Feature: A team's own TrainJobs run unchanged
  The Trainer makes a pod for each node of a TrainJob. With a podGroupPolicy in the runtime, they start together.

  Background:
    Given the policy of "volcano-scheduler.conf"
    And the nodes of "nodes.yaml"
    And the queues of "queues.yaml"

  Scenario: The nodes of a TrainJob with a podGroupPolicy start together
    Given these jobs run:
      | job   | queue   | gpus |
      | other | serving | 4    |
    When the jobs of "train_job.yaml" are submitted
    Then "tune" stays pending
    And "check" runs
    When "other" completes
    Then "tune" runs
    And queue "research" holds 6 gpus
    And the PodGroup of "tune" has minMember 3

  Scenario: Without a podGroupPolicy, each node starts as soon as it fits
    Given these jobs run:
      | job   | queue   | cpu |
      | other | serving | 100 |
    When the jobs of "train_job.yaml" are submitted with:
      | job   | cpu |
      | check | 50  |
    Then exactly 1 pod of "check" runs
    When "other" completes
    Then "check" runs

  Scenario: A column replaces the number of nodes
    When the jobs of "train_job.yaml" are submitted with:
      | job  | replicas | gpus |
      | tune | 4        | 1    |
    Then "tune" runs
    And queue "research" holds 4 gpus
    And the PodGroup of "tune" has minMember 4

  Scenario: The patches of a TrainJob decide where its nodes run
    Given these nodes:
      | node | cpu | memory | gpus | taints          |
      | spot | 16  | 32Gi   | 8    | spot:NoSchedule |
    And these jobs run:
      | job   | queue   | gpus |
      | other | serving | 8    |
    When the jobs of "train_job.yaml" are submitted
    Then "tune" runs on "spot"
