ALTER TABLE jobs ADD COLUMN started_at_ms BIGINT;
ALTER TABLE jobs ADD COLUMN terms TEXT;
ALTER TABLE keys ADD COLUMN last_used_at_ms BIGINT;
ALTER TABLE audit_heads ADD COLUMN at_ms BIGINT NOT NULL DEFAULT 0;
CREATE INDEX audit_by_resource ON audit (tenant_id, resource, (seq + 0));
CREATE INDEX audit_by_actor ON audit (tenant_id, actor, (seq + 0)) WHERE actor <> 'system';
CREATE INDEX audit_by_rare_kind ON audit (tenant_id, kind, (seq + 0))
    WHERE kind NOT IN ('job.accepted', 'job.running', 'job.finished');
