Feature: The life of a job
  From its acceptance to its one end, which is never guessed.

  Background:
    Given a running service

  @req_job_create
  Scenario: Code is run and its result waited for
    When I run the "python" code "print(6 * 7)"
    Then the job completes successfully
    And stdout is "42\n"
    And the exit code is 0

  @req_job_create @req_job_get
  Scenario: A job that nobody waits for is there afterwards
    Given the command "echo later" was submitted without waiting
    When the job has ended
    Then the job's state is "succeeded"
    And stdout is "later\n"

  @req_job_outcome
  Scenario Outline: Each way to end has its own name
    When I submit the command "<command>" with a timeout of <timeout_ms> ms
    Then the job's state is "<state>"
    And the outcome is "<outcome>"

    Examples:
      | command        | timeout_ms | state     | outcome   |
      | true           | 60000      | succeeded | exited    |
      | exit 3         | 60000      | failed    | exited    |
      | kill -SEGV $$  | 60000      | failed    | signaled  |
      | sleep 60       | 300        | timed_out | timed_out |

  @req_job_outcome
  Scenario: Running out of memory is not an exit code
    When I run the "python" code "x = 'x' * (1 << 30)" with 64 MiB of memory
    Then the job's state is "failed"
    And the outcome is "oom_killed"
    And there is no exit code

  @req_job_cancel
  Scenario: A running job is cancelled, and stays so
    Given the command "sleep 60" was submitted without waiting
    When I cancel the job
    And the job has ended
    Then the job's state is "cancelled"
    And the outcome is "cancelled"

  @req_job_output
  Scenario: Output is seen while the job runs
    Given the command "echo first; sleep 60" was submitted without waiting
    When I follow its output until "first" is seen
    Then the job has not ended

  @req_job_delete
  Scenario: A job that has ended can be deleted, and only then
    Given the command "sleep 60" was submitted without waiting
    Then deleting the job is refused as "wrong_state"
    When I cancel the job
    And the job has ended
    And I delete the job
    Then getting the job is refused as "not_found"

  @req_job_restart
  Scenario: What was accepted survives the death of the service
    Given the command "echo survived" has run
    When the service is killed and started again
    Then the job's state is "succeeded"
    And stdout is "survived\n"

  @req_job_refusal
  Scenario: What cannot be run is refused before anything is kept
    When I submit a job in the language "cobol"
    Then it is refused as "invalid" for the field "language"
    And there are no jobs
