Feature: What runs in a sandbox runs by itself
  A job sees no network but its own loopback, works in a folder of its own, and knows what it serves.

  Background:
    Given a running service

  @req_worker_network @phase1_sandbox
  Scenario: A sandbox with the network policy "none" reaches nobody
    When I submit the command "cat /proc/net/dev; ! ls /sys/class/net | grep -v lo" with the network policy "none"
    Then the job completes successfully
    And stdout contains "lo:"
    And the network policy that was applied is "none"

  @req_worker_network @phase1_sandbox
  Scenario: A sandbox with the network policy "restricted" reaches nobody either
    When I submit the command "cat /proc/net/dev" with the network policy "restricted"
    Then the job completes successfully
    And stdout contains "lo:"
    And stdout does not contain "eth0:"
    And the network policy that was applied is "restricted"

  @req_worker_workspace @req_worker_task_env @phase1_sandbox
  Scenario: A sandbox has a working directory and knows its task
    When I submit the command "pwd; env" for the task "review-17"
    Then the job completes successfully
    And stdout contains "/workspace"
    And stdout contains "CYNODE_TASK_ID=review-17"
    And stdout contains "CYNODE_JOB_ID=job-"
    And stdout contains "CYNODE_WORKSPACE_DIR=/workspace"

  @req_worker_task_env @phase1_sandbox
  Scenario: A request cannot set what only the sandbox may say
    When I submit the command "env" for the task "review-17" with the environment
      | CYNODE_TASK_ID | another |
      | COLOUR         | red     |
    Then the job completes successfully
    And stdout contains "CYNODE_TASK_ID=review-17"
    And stdout contains "COLOUR=red"
    And stdout does not contain "another"
    And a warning mentions "CYNODE_TASK_ID"

  @req_worker_network
  Scenario: An unknown network policy is none, and says so
    When I submit the command "true" with the network policy "wide-open"
    Then the job completes successfully
    And the network policy that was applied is "none"
    And a warning mentions "wide-open"
