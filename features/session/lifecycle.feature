Feature: The life of a session
  A sandbox that stays until its deadline, and steps that build on each other.

  Background:
    Given a running service

  @req_session_create @req_step_create
  Scenario: Steps share what an interpreter was told
    Given a session that lasts 600 seconds
    When I run the step "x = 41" in "python"
    And I run the step "x + 1" in "python"
    Then the step succeeds and shows "42"

  @req_step_create
  Scenario: Commands and code share files
    Given a session that lasts 600 seconds
    When I run the step "open('note', 'w').write('from code')" in "python"
    And I run the command step "cat note"
    Then the step succeeds and writes "from code"

  @req_session_secrets
  Scenario: A secret is a file of a session, for its user alone
    Given the secret "token" with the value "not for everybody"
    And a session with the secret "token"
    When I run the command step "cat /run/secrets/token; stat --printf ' %a %u' /run/secrets/token"
    Then the step succeeds and writes "not for everybody 400 1000"

  @req_session_expire
  Scenario: A session ends at its deadline
    Given a session that lasts 1 seconds
    When the session has ended
    Then the session ended because it "expired"

  @req_session_delete
  Scenario: A deleted session takes no more steps
    Given a session that lasts 600 seconds
    When I delete the session
    Then the session ended because it "deleted"
    And another step is refused as "wrong_state"

  @req_session_restart
  Scenario: The death of the service ends its sessions, and says so
    Given a session that lasts 600 seconds
    When the service dies and comes back
    Then the session ended because it "lost"
