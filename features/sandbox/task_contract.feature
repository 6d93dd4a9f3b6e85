Feature: What a task can rely on inside
  The same names and places in every sandbox, whatever image it was made from.

  Background:
    Given a running service

  @req_sandbox_workspace
  Scenario: The workspace is the working directory, can be written to, and starts empty
    When I submit the command "ls | wc -l; echo kept > file; cat file"
    Then the job completes successfully
    And stdout is "0\nkept\n"

  @req_sandbox_workspace
  Scenario: Nothing is left of a workspace for the next job
    Given the command "echo secret > /workspace/left; echo secret > /tmp/left" has run
    When I submit the command "cat /workspace/left /tmp/left"
    Then the job's state is "failed"
    And stdout does not contain "secret"

  @req_sandbox_files
  Scenario: Files of the request are in the workspace
    When I submit the command "sort -n data/numbers.txt" with the file "data/numbers.txt" containing "3\n1\n2\n"
    Then the job completes successfully
    And stdout is "1\n2\n3\n"

  @req_sandbox_task_env
  Scenario: A task without an id of its own has the job's
    When I submit the command "[ $CYNODE_TASK_ID = $CYNODE_JOB_ID ]"
    Then the job completes successfully

  @req_sandbox_artifacts
  Scenario: What is left in the artifacts folder is known afterwards
    When I submit the command "echo done > $CYNODE_ARTIFACTS_DIR/report.txt; echo $CYNODE_ARTIFACTS_DIR"
    Then the job completes successfully
    And stdout is "/workspace/.artifacts\n"
    And the artifact "report.txt" has 5 bytes

  @req_sandbox_secrets
  Scenario: Nothing of the service is in the environment
    When I submit the command "env"
    Then the job completes successfully
    And stdout does not contain "cof_"
    And stdout does not contain "COFFERDAM"

  @req_sandbox_user
  Scenario: The task is an ordinary user with a home
    When I submit the command "id -u; echo $HOME; touch /etc/x || echo refused"
    Then the job completes successfully
    And stdout is "1000\n/workspace\nrefused\n"
