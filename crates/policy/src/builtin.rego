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
	"artifact.create": "artifacts:write",
	"artifact.get": "artifacts:read",
	"artifact.list": "artifacts:read",
	"artifact.link": "artifacts:read",
	"artifact.delete": "artifacts:write",
	"receipt.get": "jobs:read",
	"audit.list": "audit:read",
	"audit.head": "audit:read",
	"audit.export": "audit:read",
	"key.create": "keys:write",
	"key.list": "keys:read",
	"key.delete": "keys:write",
	"event.list": "jobs:read",
	"metrics.read": "metrics:read",
	"worker.list": "workers:read",
	"session.create": "sessions:write",
	"session.get": "sessions:read",
	"session.list": "sessions:read",
	"session.extend": "sessions:write",
	"session.delete": "sessions:write",
	"step.create": "sessions:write",
	"step.get": "sessions:read",
	"step.list": "sessions:read",
	"step.interrupt": "sessions:write",
	"context.restart": "sessions:write",
	"file.read": "sessions:read",
	"file.write": "sessions:write",
	"process.start": "sessions:write",
	"process.get": "sessions:read",
	"process.write": "sessions:write",
	"session.pause": "sessions:write",
	"session.resume": "sessions:write",
	"session.fork": "sessions:write",
	"snapshot.create": "sessions:write",
	"snapshot.list": "sessions:read",
	"snapshot.delete": "sessions:write",
	"secret.put": "secrets:write",
	"secret.list": "secrets:read",
	"secret.delete": "secrets:write",
	"secret.use": "secrets:use",
	"image.register": "images:write",
	"image.list": "images:read",
	"image.get": "images:read",
	"image.check": "images:write",
	"image.unregister": "images:write",
	"image.publish": "images:write",
	"image.withdraw": "images:write",
	"tenant.create": "tenants:write",
	"tenant.list": "tenants:read",
	"tenant.get": "tenants:read",
	"tenant.update": "tenants:write",
	"tenant.delete": "tenants:write",
}

# What goes over all tenants, for which everything in one's own is not enough.
is_operator if "operator" in input.principal.scopes

is_operators_action if startswith(input.action, "tenant.")

is_operators_action if startswith(input.action, "worker.")

# Images that all tenants see.
is_operators_action if input.action in {"image.publish", "image.withdraw"}

# The numbers are those of the whole process, and so of all tenants.
is_operators_action if input.action == "metrics.read"

# What an operator may do to what is another tenant's.
may_cross if {
	is_operator
	input.action in {"key.create", "key.list", "key.delete", "audit.list", "audit.head", "audit.export"}
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

denials contains {"rule": "operator", "why": "only an operator may do this", "change": change} if {
	is_operators_action
	not is_operator
	change := "use a key with the scope operator"
}

denials contains {"rule": "tenant", "why": "it belongs to another tenant", "change": "none"} if {
	input.resource.tenant != input.principal.tenant
	not may_cross
}

denials contains {"rule": "agent", "why": why, "change": change} if {
	input.principal.agent != null
	input.facts.agent != null
	input.facts.agent != input.principal.agent
	why := sprintf("the key is the agent %s's", [input.principal.agent])
	change := sprintf("leave the agent out, or name %s", [input.principal.agent])
}

# A key gives at most what its maker has; everything does not include the operator's.
denials contains {"rule": "escalation", "why": why, "change": change} if {
	input.action == "key.create"
	some scope in input.facts.scopes
	not scope in input.principal.scopes
	not covered(scope)
	why := sprintf("the key that asks does not have the scope %s itself", [scope])
	change := sprintf("leave %s out, or use a key that has it", [scope])
}

denials contains {"rule": "escalation", "why": why, "change": change} if {
	input.action == "key.create"
	input.principal.agent != null
	input.facts.agent == null
	why := sprintf("the key that asks is the agent %s's, and would make one for all", [input.principal.agent])
	change := sprintf("name the agent %s", [input.principal.agent])
}

covered(scope) if {
	"*" in input.principal.scopes
	scope != "operator"
}

decision := {"allow": count(denials) == 0, "denials": denials}
