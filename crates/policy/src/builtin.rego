# The rules that hold where nobody has written others. Each denial names its rule, says why, and what would do.
package cofferdam

import rego.v1

# Which scope an action takes. An action that is not here is denied.
scope_of := {
	"job.create": "jobs:write",
	"job.get": "jobs:read",
	"job.list": "jobs:read",
	"job.cancel": "jobs:write",
	"job.delete": "jobs:write",
	"receipt.get": "jobs:read",
	"audit.list": "audit:read",
	"audit.head": "audit:read",
	"audit.export": "audit:read",
	"key.create": "keys:write",
	"key.list": "keys:read",
	"key.delete": "keys:write",
	"worker.list": "workers:read",
}

denials contains {"rule": "action", "why": "there is no such action", "change": "none"} if {
	not scope_of[input.action]
}

denials contains {"rule": "scope", "why": why, "change": change} if {
	wanted := scope_of[input.action]
	not wanted in input.principal.scopes
	not "*" in input.principal.scopes
	why := sprintf("the key lacks the scope %s", [wanted])
	change := sprintf("use a key with the scope %s", [wanted])
}

denials contains {"rule": "tenant", "why": "it belongs to another tenant", "change": "none"} if {
	input.resource.tenant != input.principal.tenant
}

denials contains {"rule": "agent", "why": why, "change": change} if {
	input.principal.agent != null
	input.facts.agent != null
	input.facts.agent != input.principal.agent
	why := sprintf("the key is the agent %s's", [input.principal.agent])
	change := sprintf("leave the agent out, or name %s", [input.principal.agent])
}

decision := {"allow": count(denials) == 0, "denials": denials}
