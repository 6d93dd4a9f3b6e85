CREATE TABLE tenants (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    created_at_ms BIGINT NOT NULL
);
CREATE TABLE keys (
    id TEXT PRIMARY KEY,
    tenant_id TEXT NOT NULL REFERENCES tenants (id),
    name TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    scopes TEXT NOT NULL,
    agent TEXT,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT,
    revoked_at_ms BIGINT
);
CREATE TABLE jobs (
    id TEXT PRIMARY KEY,
    tenant_id TEXT NOT NULL REFERENCES tenants (id),
    agent TEXT,
    task_id TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT,
    message TEXT,
    created_at_ms BIGINT NOT NULL,
    transition_at_ms BIGINT NOT NULL,
    spec TEXT NOT NULL,
    result TEXT,
    fence BIGINT NOT NULL,
    starts BIGINT NOT NULL,
    worker TEXT,
    lease_until_ms BIGINT,
    cancelled_by TEXT
);
CREATE INDEX jobs_by_tenant ON jobs (tenant_id, created_at_ms, id);
CREATE INDEX jobs_unfinished ON jobs (state, created_at_ms) WHERE state IN ('accepted', 'queued', 'running');
CREATE TABLE idempotency (
    tenant_id TEXT NOT NULL,
    route TEXT NOT NULL,
    name TEXT NOT NULL,
    body_hash TEXT NOT NULL,
    resource TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, route, name)
);
CREATE TABLE output (
    job_id TEXT NOT NULL,
    seq BIGINT NOT NULL,
    kind TEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    bytes {{bytes}} NOT NULL,
    PRIMARY KEY (job_id, seq)
);
CREATE TABLE audit_heads (
    tenant_id TEXT PRIMARY KEY,
    seq BIGINT NOT NULL,
    hash TEXT NOT NULL
);
CREATE TABLE audit (
    tenant_id TEXT NOT NULL,
    seq BIGINT NOT NULL,
    at_ms BIGINT NOT NULL,
    kind TEXT NOT NULL,
    actor TEXT NOT NULL,
    resource TEXT NOT NULL,
    details TEXT NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (tenant_id, seq)
);
