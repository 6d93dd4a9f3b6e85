CREATE TABLE artifacts (
    id TEXT PRIMARY KEY,
    tenant_id TEXT NOT NULL REFERENCES tenants (id),
    job_id TEXT,
    name TEXT NOT NULL,
    content_type TEXT NOT NULL,
    size_bytes BIGINT NOT NULL,
    sha256 TEXT,
    state TEXT NOT NULL,
    attempt TEXT,
    wrapped_key TEXT,
    stored_sha256 TEXT,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL
);
CREATE INDEX artifacts_by_tenant ON artifacts (tenant_id, created_at_ms, id);
CREATE INDEX artifacts_by_job ON artifacts (job_id);
CREATE INDEX artifacts_by_end ON artifacts (expires_at_ms);
CREATE INDEX artifacts_deleting ON artifacts (id) WHERE state = 'deleting';
CREATE TABLE artifact_usage (
    tenant_id TEXT PRIMARY KEY,
    bytes BIGINT NOT NULL
);
