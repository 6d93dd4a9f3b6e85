CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    tenant_id TEXT NOT NULL REFERENCES tenants (id),
    agent TEXT,
    task_id TEXT NOT NULL,
    state TEXT NOT NULL,
    cause TEXT,
    message TEXT,
    created_at_ms BIGINT NOT NULL,
    transition_at_ms BIGINT NOT NULL,
    spec TEXT NOT NULL,
    terms TEXT,
    expires_at_ms BIGINT NOT NULL,
    idle_ms BIGINT,
    used_at_ms BIGINT NOT NULL,
    worker TEXT NOT NULL,
    runtime TEXT,
    generation BIGINT NOT NULL,
    last_step BIGINT NOT NULL,
    cpus_millis BIGINT NOT NULL,
    memory_bytes BIGINT NOT NULL
);
CREATE INDEX sessions_by_tenant ON sessions (tenant_id, created_at_ms, id);
CREATE INDEX sessions_by_task ON sessions (tenant_id, task_id, created_at_ms, id);
CREATE INDEX sessions_by_agent ON sessions (tenant_id, agent, created_at_ms, id) WHERE agent IS NOT NULL;
CREATE INDEX sessions_alive ON sessions (expires_at_ms) WHERE state <> 'ended';
CREATE INDEX sessions_idle ON sessions ((used_at_ms + idle_ms)) WHERE state <> 'ended' AND idle_ms IS NOT NULL;
CREATE INDEX sessions_by_worker ON sessions (worker) WHERE state <> 'ended';
CREATE INDEX sessions_alive_by_tenant ON sessions (tenant_id, created_at_ms, id) WHERE state <> 'ended';
CREATE INDEX sessions_ended ON sessions (transition_at_ms) WHERE state = 'ended';
CREATE TABLE steps (
    id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id),
    number BIGINT NOT NULL,
    context TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    message TEXT,
    created_at_ms BIGINT NOT NULL,
    started_at_ms BIGINT,
    transition_at_ms BIGINT NOT NULL,
    spec TEXT NOT NULL,
    result TEXT,
    generation BIGINT NOT NULL,
    cancelled_by TEXT
);
CREATE UNIQUE INDEX steps_by_number ON steps (session_id, number);
CREATE INDEX steps_unfinished ON steps (session_id, context) WHERE state IN ('queued', 'running');
