ALTER TABLE jobs ADD COLUMN output_kept BIGINT NOT NULL DEFAULT 1;
ALTER TABLE jobs ADD COLUMN output_expired_at_ms BIGINT;
DROP INDEX jobs_unfinished;
CREATE INDEX jobs_unfinished ON jobs (state, created_at_ms, id)
    WHERE state IN ('accepted', 'queued', 'running');
CREATE INDEX jobs_by_state ON jobs (tenant_id, state, created_at_ms, id)
    WHERE state NOT IN ('accepted', 'queued', 'running');
CREATE INDEX jobs_by_task ON jobs (tenant_id, task_id, created_at_ms, id);
CREATE INDEX jobs_ended ON jobs (output_kept, transition_at_ms)
    WHERE state NOT IN ('accepted', 'queued', 'running');
CREATE INDEX keys_by_tenant ON keys (tenant_id, created_at_ms, id);
CREATE INDEX idempotency_by_age ON idempotency (created_at_ms);
CREATE TABLE audit_checkpoints (
    tenant_id TEXT PRIMARY KEY,
    seq BIGINT NOT NULL,
    hash TEXT NOT NULL,
    at_ms BIGINT NOT NULL,
    envelope TEXT
);
