ALTER TABLE tenants ADD COLUMN max_running BIGINT;
ALTER TABLE tenants ADD COLUMN max_queued BIGINT;
ALTER TABLE tenants ADD COLUMN requests_per_second BIGINT;
ALTER TABLE tenants ADD COLUMN burst BIGINT;
ALTER TABLE tenants ADD COLUMN artifact_bytes BIGINT;
ALTER TABLE tenants ADD COLUMN deleted_at_ms BIGINT;
CREATE INDEX jobs_queued ON jobs (tenant_id, created_at_ms, id) WHERE state = 'queued';
UPDATE keys SET scopes = '* operator' WHERE id IN (
    SELECT id FROM keys WHERE name = 'admin' AND scopes = '*' AND revoked_at_ms IS NULL
    ORDER BY created_at_ms, id LIMIT 1
);
