"""What schemathesis must not do: take back the key that it uses itself, or change how much its own tenant may ask. It
learns ids from answers, also these. And it does not follow what has no end: a process that nobody ends, a folder, the feed."""

import os
import time

import schemathesis

OWN = {
    os.environ["COFFERDAM_CONTRACT_KEY_ID"]: "key-" + "a" * 16,
    os.environ["COFFERDAM_CONTRACT_TENANT_ID"]: "ten-" + "a" * 16,
}

ENDLESS = ("/processes/{number}/output", "/files/watch", "/v1/events")


@schemathesis.hook
def before_call(context, case, kwargs):
    id = (case.path_parameters or {}).get("id")
    if case.method.upper() in ("DELETE", "PATCH") and id in OWN:
        case.path_parameters["id"] = OWN[id]
    query = case.query or {}
    if case.operation.path.endswith(ENDLESS) and query.get("follow", True) in (True, "true"):
        case.query = {**query, "follow": "false"}
    # Nor is its end waited for.
    wait = str(query.get("wait_ms", ""))
    if case.operation.path.endswith("/processes/{number}") and wait.isdigit() and int(wait) <= 60000:
        case.query = {**query, "wait_ms": "10"}


# Wrong keys are slowed down by address (429), to ten a second. An operation that succeeds for the first time is tried
# with three of them at once, and no hook is asked about those.
PATIENCE_SECONDS = 0.3
succeeded = set()


@schemathesis.hook
def after_call(context, case, response):
    is_first = response.status_code < 300 and case.operation.label not in succeeded
    if is_first:
        succeeded.add(case.operation.label)
    if is_first or response.status_code == 401:
        time.sleep(PATIENCE_SECONDS)
