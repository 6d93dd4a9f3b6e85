ALTER TABLE sessions ADD COLUMN pause_mode TEXT;
ALTER TABLE sessions ADD COLUMN on_expiry TEXT NOT NULL DEFAULT 'delete';
ALTER TABLE sessions ADD COLUMN on_drain TEXT NOT NULL DEFAULT 'end';
ALTER TABLE sessions ADD COLUMN created_by TEXT;
CREATE INDEX sessions_to_pause ON sessions (expires_at_ms) WHERE on_expiry = 'pause' AND state <> 'ended';
CREATE TABLE archives (
    owner TEXT NOT NULL,
    attempt TEXT NOT NULL,
    tenant_id TEXT NOT NULL REFERENCES tenants (id),
    state TEXT NOT NULL,
    writer TEXT NOT NULL,
    wrapped_key TEXT,
    size_bytes BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    PRIMARY KEY (owner, attempt)
);
CREATE INDEX archives_unsettled ON archives (state) WHERE state <> 'ready';
CREATE TABLE snapshots (
    id TEXT PRIMARY KEY,
    tenant_id TEXT NOT NULL REFERENCES tenants (id),
    name TEXT NOT NULL,
    session_id TEXT NOT NULL,
    created_by TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL
);
CREATE UNIQUE INDEX snapshots_by_name ON snapshots (tenant_id, name);
CREATE INDEX snapshots_by_tenant ON snapshots (tenant_id, created_at_ms, id);
CREATE TABLE secrets (
    tenant_id TEXT NOT NULL REFERENCES tenants (id),
    name TEXT NOT NULL,
    sealed TEXT NOT NULL,
    changed_by TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    changed_at_ms BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, name)
)
