"""What schemathesis must not do: take back the key that it uses itself. It learns ids from answers, also this one."""

import os

import schemathesis

OWN = os.environ["COFFERDAM_CONTRACT_KEY_ID"]
NOBODYS = "key-" + "a" * 16


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.method.upper() == "DELETE" and (case.path_parameters or {}).get("id") == OWN:
        case.path_parameters["id"] = NOBODYS
