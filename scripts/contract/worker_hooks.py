"""What only the caller of a worker knows: which worker it asks, since another one answers that it cannot serve the call;
and that a run which nobody looks after should end soon."""

import os

import schemathesis

WORKER = os.environ["COFFERDAM_CONTRACT_WORKER_ID"]


@schemathesis.hook
def before_call(context, case, kwargs):
    body = case.body
    if not isinstance(body, dict):
        return
    if isinstance(body.get("worker_id"), str):
        body["worker_id"] = WORKER
    lease = body.get("lease_ms")
    if isinstance(lease, int) and not isinstance(lease, bool) and lease > 1000:
        body["lease_ms"] = 1000
