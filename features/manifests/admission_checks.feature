@dialect
Feature: A queue of Kueue whose workloads another controller approves
  The AdmissionCheck is that of the team's file. A scenario has no controller for it: sentences play it (kueue#4809).

  Background:
    Given these nodes:
      | node | cpu | memory |
      | n1   | 4   | 16Gi   |
    And the Kueue queues of "admission_checks.yaml"
    And these jobs are submitted:
      | job   | queue    | cpu |
      | train | research | 2   |

  Scenario: A job keeps its quota while it waits for the check
    When these jobs are submitted:
      | job   | queue    | cpu |
      | later | research | 2   |
    Then "train" waits for admission check "budget"
    And "train" stays pending
    And "later" stays pending
    When admission check "budget" approves "train"
    Then "train" runs
    When "train" completes
    Then "later" waits for admission check "budget"

  Scenario: A rejected job gives its quota to the next one
    When these jobs are submitted:
      | job   | queue    | cpu |
      | later | research | 2   |
    And admission check "budget" rejects "train"
    Then "later" waits for admission check "budget"
    When admission check "budget" approves "later"
    Then "later" runs
    And "train" stays pending

  Scenario: A job that has to try again asks the check again
    When admission check "budget" retries "train"
    Then "train" waits for admission check "budget"
    When admission check "budget" approves "train"
    Then "train" runs
